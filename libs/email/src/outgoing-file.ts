/** The file of an outgoing mail: as given, from a mail that came in, or fetched; bounded. */
import { SendError, readBounded, wasNeverSent, type OutgoingContent } from '@botmesh/core'
import type { LetterFile } from './render-outbound.js'
import type { MailFile } from './read-mail.js'

type OutgoingMedia = NonNullable<OutgoingContent['media']>

const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/jpeg': 'jpg',
  'image/png': 'png',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'application/pdf': 'pdf',
  'audio/mpeg': 'mp3',
  'audio/ogg': 'ogg',
  'video/mp4': 'mp4',
  'text/plain': 'txt',
}
const FALLBACK_TYPES = { image: 'image/jpeg', audio: 'audio/mpeg', video: 'video/mp4', sticker: 'image/webp' }

export interface FileRules {
  provider: string
  maxBytes: number
  timeoutMs: number
  /** A file of a mail that came in, by its id. */
  received: (id: string) => Promise<MailFile | null>
}

/** @throws SendError: final if it is too large or there is none, retryable if it cannot be fetched at present. */
export async function outgoingFile(media: OutgoingMedia, rules: FileRules): Promise<LetterFile> {
  const { bytes, mimeType, fileName } = await contentOf(media, rules)
  if (bytes.byteLength > rules.maxBytes) throw tooLarge(rules, bytes.byteLength)
  const type = (
    media.mimeType ??
    mimeType ??
    FALLBACK_TYPES[media.kind as 'image'] ??
    'application/octet-stream'
  ).split(';')[0]!
  const name = media.fileName ?? fileName ?? `${media.kind}.${EXTENSIONS[type] ?? 'bin'}`
  return { bytes, mimeType: type.trim(), fileName: name }
}

async function contentOf(
  media: OutgoingMedia,
  rules: FileRules,
): Promise<{ bytes: Uint8Array; mimeType?: string; fileName?: string | null }> {
  if (media.data !== undefined) return { bytes: media.data }
  if (media.id !== undefined) {
    const file = await rules.received(media.id)
    if (file !== null) return file
    throw refuse(rules, 'The file is there no more: give its data.')
  }
  // Not a path on the disk: a content may come from anywhere.
  if (media.url !== undefined && URL.canParse(media.url) && /^https?:$/.test(new URL(media.url).protocol)) {
    return fetched(media.url, rules)
  }
  throw refuse(
    rules,
    'The media has no content: give it data, the id of a file that came in, or an http(s) url.',
  )
}

async function fetched(url: string, rules: FileRules): Promise<{ bytes: Uint8Array; mimeType?: string }> {
  const { provider, maxBytes, timeoutMs } = rules
  const host = new URL(url).host
  let response: Response
  let bytes: Uint8Array | null
  try {
    response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) })
    bytes = response.ok ? await readBounded(response, maxBytes) : new Uint8Array()
  } catch (error) {
    const why = wasNeverSent(error) ? 'could not be reached' : 'did not answer in time'
    throw new SendError(`The file to send was not fetched: ${host} ${why}.`, {
      provider,
      outcome: 'retryable',
    })
  }
  if (!response.ok) {
    const outcome = response.status === 429 || response.status >= 500 ? 'retryable' : 'final'
    throw new SendError(`The file to send was not fetched: ${host} answered ${response.status}.`, {
      provider,
      outcome,
    })
  }
  if (bytes === null) throw tooLarge(rules, undefined)
  const type = response.headers.get('content-type')
  return { bytes, ...(type === null ? {} : { mimeType: type }) }
}

function tooLarge(rules: FileRules, bytes: number | undefined): SendError {
  const size = bytes === undefined ? '' : ` (${bytes} bytes)`
  return refuse(
    rules,
    `The file is too large${size}: maxAttachmentBytes is ${rules.maxBytes}. Send a link, or raise it if the mail server takes more.`,
  )
}

function refuse({ provider }: FileRules, message: string): SendError {
  return new SendError(message, { provider, outcome: 'final' })
}
