/** Reads a body that somebody else sends, without letting them choose how much memory it takes. */

/** @returns the bytes, or null once more than `maxBytes` have come (the rest is not read). */
export async function readBounded(response: Response, maxBytes: number): Promise<Uint8Array | null> {
  const parts: Uint8Array[] = []
  let bytes = 0
  if (response.body === null) return new Uint8Array()
  for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
    bytes += part.byteLength
    if (bytes > maxBytes) return null
    parts.push(part)
  }
  return new Uint8Array(Buffer.concat(parts))
}
