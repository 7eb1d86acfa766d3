/**
 * Chat keys: `<provider.id>/<chatId>[/<participant>]`, each part percent-encoded, so that no part can contain the
 * separator. In groups the key is per participant, as the conversation's scope is (B4).
 */
export interface ChatAddress {
  provider: string
  chatId: string
  participant?: string
}

export function chatKeyOf(address: ChatAddress): string {
  const chat = `${chatKeyPrefix(address.provider)}${encodedPart(address.chatId)}`
  return address.participant === undefined ? chat : `${chat}/${encodedPart(address.participant)}`
}

/** Half a character, as JSON can carry it, has no encoding: it is replaced by U+FFFD. */
export function encodedPart(part: string): string {
  return encodeURIComponent(part.replace(/\p{Surrogate}/gu, '\u{fffd}'))
}

/** What the keys of all chats of a provider begin with. */
export function chatKeyPrefix(provider: string): string {
  return `${encodedPart(provider)}/`
}

/** @returns null if `key` was not made by `chatKeyOf`. */
export function parseChatKey(key: string): ChatAddress | null {
  const [provider, chatId, participant, ...rest] = key.split('/')
  if (provider === undefined || chatId === undefined || rest.length > 0) return null
  try {
    const address: ChatAddress = {
      provider: decodeURIComponent(provider),
      chatId: decodeURIComponent(chatId),
    }
    if (participant !== undefined) address.participant = decodeURIComponent(participant)
    return address
  } catch {
    return null
  }
}
