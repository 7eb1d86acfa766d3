/** Neutral content → a mail in its thread, as MIME. Pure but for the date, which is passed in. */
import MailComposer from 'nodemailer/lib/mail-composer'
import { SendError, type OutgoingContent } from '@botmesh/core'
import type { ThreadState } from './parse-inbound.js'
import { BOT_HEADER } from './manners.js'

export interface Letter {
  provider: string
  from: { address: string; name: string | null }
  to: string
  /** Without brackets. */
  messageId: string
  /** Null: it begins a thread, under `subject`. */
  thread: ThreadState | null
  /** Of a mail that begins a thread, or whose thread cannot be read any more. */
  subject: string
  /** True: it answers somebody, though the thread may not be known. */
  isAnswer: boolean
  text: string
  file: LetterFile | null
  date: Date
}

export interface LetterFile {
  bytes: Uint8Array
  fileName: string
  mimeType: string
}

const MAX_SUBJECT_CHARS = 500

/** The text of a mail; buttons and lists as numbered lines. @throws SendError (final) */
export function renderText(provider: string, content: OutgoingContent): string {
  if (content.template !== undefined) {
    throw new SendError('E-mail has no templates: send text.', { provider, outcome: 'final' })
  }
  const parts = [content.text, content.media?.caption, buttonLines(content), listLines(content)]
  const text = parts.filter((part) => part !== undefined && part !== '').join('\n\n')
  if (text === '' && content.media === undefined) {
    throw new SendError('The mail is empty: give it text, media, buttons or a list.', {
      provider,
      outcome: 'final',
    })
  }
  return text
}

/** @returns the mail as it is sent. */
export async function renderOutbound(letter: Letter): Promise<Buffer> {
  const { thread, file } = letter
  const composer = new MailComposer({
    from: {
      address: letter.from.address,
      name: letter.from.name ?? '',
    },
    to: { address: letter.to, name: '' },
    subject: letter.isAnswer ? answerSubject(thread?.subject ?? letter.subject) : letter.subject,
    messageId: `<${letter.messageId}>`,
    date: letter.date,
    ...(thread === null
      ? {}
      : {
          inReplyTo: `<${thread.lastId}>`,
          references: thread.references.map((id) => `<${id}>`),
        }),
    headers: {
      // RFC 3834: says to other machines that no person wrote this; Exchange wants it in words of its own.
      'Auto-Submitted': letter.isAnswer ? 'auto-replied' : 'auto-generated',
      'X-Auto-Response-Suppress': 'All',
      [BOT_HEADER]: letter.provider,
    },
    text: letter.text,
    ...(file === null
      ? {}
      : {
          attachments: [
            {
              filename: file.fileName,
              contentType: file.mimeType,
              content: Buffer.from(file.bytes),
              contentDisposition: 'attachment',
            },
          ],
        }),
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return composer.compile().build()
}

/** `Re:` once, whatever the language of the program that added it before. */
export function answerSubject(subject: string): string {
  const bare = subject
    .slice(0, MAX_SUBJECT_CHARS)
    .replace(/^(\s*(re|aw|sv|antw|rv|res|rif)\s*(\[\d+\])?\s*:\s*)+/i, '')
  return `Re: ${bare}`.trim()
}

function buttonLines(content: OutgoingContent): string | undefined {
  return content.buttons?.map((button, index) => `${index + 1}. ${button.text}`).join('\n')
}

function listLines(content: OutgoingContent): string | undefined {
  let number = 0
  return content.list?.sections
    .map((section) => {
      const rows = section.rows.map((row) => {
        number += 1
        return `${number}. ${row.title}${row.description === undefined ? '' : `: ${row.description}`}`
      })
      return [...(section.title === undefined ? [] : [section.title]), ...rows].join('\n')
    })
    .join('\n\n')
}
