/** Fetches a received file from WhatsApp's media servers and decrypts it. */
import { ProviderError, type Media } from '@botmesh/core'
import type { Library } from './library.js'
import { readMediaId } from './parse-inbound.js'

/** @throws ProviderError: no id of this transport, gone, larger than `maxBytes`. */
export async function downloadMedia(
  provider: string,
  library: Library,
  media: Media,
  maxBytes: number,
): Promise<Uint8Array> {
  const failure = (message: string, reason: string, cause?: unknown) =>
    new ProviderError(message, { provider, reason, final: true }, cause)
  const found = media.id === undefined ? null : readMediaId(media.id)
  if (found === null) throw failure('This media has no id of WhatsApp Web.', 'no-media-id')
  const place = placeOf(found.where)
  if (place === null) throw failure('This media does not lie on a server of WhatsApp.', 'no-media-id')
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    const stream = await library.downloadContentFromMessage(
      { ...place, mediaKey: found.mediaKey },
      media.kind,
    )
    for await (const chunk of stream) {
      size += (chunk as Uint8Array).byteLength
      // Leaving the loop ends the stream.
      if (size > maxBytes) break
      chunks.push(chunk as Uint8Array)
    }
  } catch (error) {
    throw failure('The file could not be downloaded.', 'download-failed', error)
  }
  if (size > maxBytes) {
    throw failure(`The file is larger than ${maxBytes} bytes: raise maxBytes to fetch it.`, 'file-too-large')
  }
  return Buffer.concat(chunks)
}

/** Whoever writes to the bot chooses the address: nothing but WhatsApp's own servers is asked. */
function placeOf(where: string): { directPath: string } | { url: string } | null {
  if (where.startsWith('/')) return { directPath: where }
  if (!URL.canParse(where)) return null
  const { protocol, hostname } = new URL(where)
  return protocol === 'https:' && hostname.endsWith('.whatsapp.net') ? { url: where } : null
}
