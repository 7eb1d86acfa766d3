/** A mail that was read → messages for the runtime, or why it is none of the bot's business. Pure. */
import type { Media, Message } from '@botmesh/core'
import { chatIdOf, threadOfMail } from './addresses.js'
import { whyNotAnswered, type Self } from './manners.js'
import { MAX_TEXT_CHARS, cutQuoted } from './reply-text.js'
import type { Mail, MailFile } from './read-mail.js'

/** What an answer needs to know of the mail that it answers. */
export interface ThreadState {
  subject: string
  /** Message-ID of the last mail from the person. */
  lastId: string
  /** Message-IDs up to and with that one, the oldest first. */
  references: string[]
}

export type EmailEvent =
  | {
      kind: 'messages'
      /** The first has the text and the first file, each further file follows as a message of its own. */
      messages: [Message, ...Message[]]
      thread: ThreadState
    }
  | { kind: 'ignored'; reason: string }

/** `message.raw`: what the neutral form has no place for. */
export interface RawMail {
  subject: string
  /** The whole text, with what was quoted. */
  text: string
  to: string[]
  /** By name in lower case, unfolded; of a header that is there several times the first. */
  headers: ReadonlyMap<string, string>
}

/** More files of one mail are left out. */
export const MAX_FILES = 20
const KEPT_REFERENCES = 30

/**
 * @param nowMs for a mail that does not say when it was written, or says that it will be
 * @param leftOut true: the mail was too large, and its files were not read
 */
export function parseInbound(mail: Mail, self: Self, nowMs: number, leftOut = false): EmailEvent {
  const reason = whyNotAnswered(mail, self)
  const peer = mail.replyTo ?? mail.from
  if (reason !== null || peer === null) return { kind: 'ignored', reason: reason ?? 'it has no sender' }
  const thread = threadOfMail(self, mail)
  const isAnswer = mail.inReplyTo.length > 0 || mail.references.length > 0
  const written = cutQuoted(mail.text)
  const [quotedId] = mail.inReplyTo
  const common = {
    chatId: chatIdOf({ address: peer.address, thread }),
    from: peer.address,
    ...(peer.name === null ? {} : { fromName: peer.name }),
    isGroup: false,
    timestamp: Math.min(mail.date ?? nowMs, nowMs),
  }
  const files = leftOut ? [] : mail.files.slice(0, MAX_FILES)
  const [first, ...rest] = files
  const lang = languageOf(mail)
  const message: Message = {
    ...common,
    id: mail.id,
    ...(quotedId === undefined ? {} : { quotedId }),
    ...(lang === undefined ? {} : { lang }),
    type: first === undefined ? 'text' : 'media',
    // Of a mail that says everything in its subject, the subject is what was said.
    body: written !== '' || isAnswer || first !== undefined ? written : mail.subject,
    ...(first === undefined ? {} : { media: mediaOf(first, 1, mail.id) }),
    raw: rawOf(mail),
  }
  const further = rest.map((file, index): Message => ({
    ...common,
    id: `${mail.id}#${index + 2}`,
    type: 'media',
    body: '',
    media: mediaOf(file, index + 2, mail.id),
  }))
  return { kind: 'messages', messages: [message, ...further], thread: threadStateOf(mail) }
}

/** What an answer to this mail continues. */
export function threadStateOf(mail: Mail): ThreadState {
  const before = mail.references.length > 0 ? mail.references : mail.inReplyTo
  const all = [...before, mail.id]
  return {
    subject: mail.subject,
    lastId: mail.id,
    references: all.length <= KEPT_REFERENCES ? all : [all[0]!, ...all.slice(1 - KEPT_REFERENCES)],
  }
}

/** `media.id` → which file of which mail; undefined if it is none of this transport's. */
export function readFileId(id: string): { mailId: string; number: number } | undefined {
  const [, number, mailId] = /^(\d{1,3})\/(.+)$/s.exec(id) ?? []
  return mailId === undefined ? undefined : { mailId, number: Number(number) }
}

function mediaOf(file: MailFile, number: number, mailId: string): Media {
  return {
    kind: kindOf(file.mimeType),
    mimeType: file.mimeType,
    sizeBytes: file.bytes.byteLength,
    ...(file.fileName === null ? {} : { fileName: file.fileName }),
    id: `${number}/${mailId}`,
  }
}

function kindOf(mimeType: string): Media['kind'] {
  const [family] = mimeType.split('/')
  return family === 'image' || family === 'audio' || family === 'video' ? family : 'document'
}

function languageOf(mail: Mail): string | undefined {
  const [tag] = (mail.headers.get('content-language') ?? '').split(',')
  return tag !== undefined && /^[a-z]{2,3}(-[a-z0-9]{2,8})*$/i.test(tag.trim()) ? tag.trim() : undefined
}

function rawOf(mail: Mail): RawMail {
  return {
    subject: mail.subject,
    text: mail.text.slice(0, MAX_TEXT_CHARS),
    to: mail.to,
    headers: mail.headers,
  }
}
