/** Chat keys as people read them: `webchat:tienda/ana@home`, each part percent-encoded in the key itself. */
export function readableKey(key: string): string {
  return key.split('/').map(decoded).join('/')
}

/** The chat of a key `<provider>/<chat>…`. */
export function chatOf(key: string): string {
  return decoded(key.split('/')[1] ?? '')
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part // Not encoded by us: shown as it is.
  }
}
