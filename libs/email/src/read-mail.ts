/** A mail as it travels (MIME) → its parts. Bounded, and a mail of any form is read without an error but `null`. */
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { scheduler } from 'node:timers/promises'
import { simpleParser, type ParsedMail } from 'mailparser'
import { readAddress, readIds } from './addresses.js'
import { textOfHtml } from './html-text.js'

export interface MailFile {
  fileName: string | null
  mimeType: string
  bytes: Uint8Array
}

export interface Person {
  /** In lower case. */
  address: string
  name: string | null
}

export interface Mail {
  /** Message-ID without brackets, or a hash of the mail if it has none: the same whoever reads it. */
  id: string
  inReplyTo: string[]
  references: string[]
  from: Person | null
  replyTo: Person | null
  to: string[]
  subject: string
  /** The whole text; of an HTML mail as text. */
  text: string
  /** Milliseconds since the epoch; null if the mail does not say. */
  date: number | null
  /** By name in lower case, unfolded; of a header that is there several times the first, which is the last added. */
  headers: ReadonlyMap<string, string>
  /** Attached by the writer: not the pictures of an HTML text. */
  files: MailFile[]
}

const MAX_HEAD_BYTES = 256 * 1024
const PIECE_BYTES = 64 * 1024
const MAX_PARTS = 300
const MAX_HEADER_CHARS = 20_000
const MAX_SUBJECT_CHARS = 500
const MAX_NAME_CHARS = 200
const MAX_RECIPIENTS = 100

/** @returns null for what is not a mail (no header at all), or is made to be too much work. Never rejects. */
export async function readMail(raw: Uint8Array): Promise<Mail | null> {
  let parsed: ParsedMail
  try {
    parsed = await simpleParser(Readable.from(piecesOf(raw), { objectMode: false }), {
      skipTextToHtml: true,
      skipImageLinks: true,
      keepCidLinks: true,
      checksumAlgo: false,
      maxHeadSize: MAX_HEAD_BYTES,
      maxChildNodes: MAX_PARTS,
      // Only a mail that is nothing but HTML would be made into text: see textOf.
      skipHtmlToText: true,
    })
  } catch {
    // Whoever sends such a mail gets no answer; what the parser says of it helps nobody.
    return null
  }
  const headers = readHeaders(parsed)
  if (!headers.has('from') && !headers.has('message-id') && !headers.has('subject')) return null
  const date = parsed.date?.getTime()
  return {
    id: readIds(headers.get('message-id') ?? '')[0] ?? `none-${hashOf(raw)}`,
    inReplyTo: readIds(headers.get('in-reply-to') ?? ''),
    references: readIds(headers.get('references') ?? ''),
    from: personIn(parsed.from),
    replyTo: personIn(parsed.replyTo),
    to: recipientsOf(parsed),
    subject: lineOf(parsed.subject, MAX_SUBJECT_CHARS),
    text: textOf(parsed),
    date: date === undefined || Number.isNaN(date) ? null : date,
    headers,
    files: filesOf(parsed),
  }
}

/** Between two pieces other work has its turn: a large mail must not keep a lease from being renewed. */
async function* piecesOf(raw: Uint8Array): AsyncGenerator<Buffer> {
  for (let at = 0; at < raw.byteLength; at += PIECE_BYTES) {
    if (at > 0) await scheduler.yield()
    yield Buffer.from(raw.buffer, raw.byteOffset + at, Math.min(PIECE_BYTES, raw.byteLength - at))
  }
}

function readHeaders(parsed: ParsedMail): Map<string, string> {
  const headers = new Map<string, string>()
  for (const { key, line } of parsed.headerLines ?? []) {
    if (headers.has(key)) continue
    const value = line.slice(line.indexOf(':') + 1, MAX_HEADER_CHARS)
    headers.set(key, value.replace(/\s+/g, ' ').trim())
  }
  return headers
}

type Addresses = ParsedMail['from'] | ParsedMail['to']

function personIn(header: Addresses): Person | null {
  const [first] = Array.isArray(header) ? header : [header]
  for (const { address, name } of first?.value ?? []) {
    const known = typeof address === 'string' ? readAddress(address) : null
    if (known !== null) return { address: known, name: lineOf(name, MAX_NAME_CHARS) || null }
  }
  return null
}

function recipientsOf({ to, cc }: ParsedMail): string[] {
  return [to, cc]
    .flat()
    .flatMap((header) => header?.value ?? [])
    .slice(0, MAX_RECIPIENTS)
    .flatMap(({ address }) => (typeof address === 'string' ? [readAddress(address)] : []))
    .filter((address) => address !== null)
}

function textOf({ text, html }: ParsedMail): string {
  if (typeof text === 'string' && text.trim() !== '') return text
  return typeof html === 'string' ? textOfHtml(html) : ''
}

function filesOf(parsed: ParsedMail): MailFile[] {
  return parsed.attachments
    .filter(({ related, contentDisposition }) => !(related && contentDisposition !== 'attachment'))
    .map(({ filename, contentType, content }) => ({
      fileName: lineOf(filename, MAX_NAME_CHARS).replace(/[/\\]/g, '_') || null,
      mimeType: lineOf(contentType, MAX_NAME_CHARS).toLowerCase() || 'application/octet-stream',
      bytes: content,
    }))
}

function lineOf(text: unknown, maxChars: number): string {
  return typeof text === 'string'
    ? text
        .slice(0, maxChars)
        .replace(/[\p{Cc}\s]+/gu, ' ')
        .trim()
    : ''
}

function hashOf(raw: Uint8Array): string {
  return createHash('sha256').update(raw).digest('hex').slice(0, 32)
}
