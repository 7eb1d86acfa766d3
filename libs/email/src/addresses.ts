/**
 * Who is written to, and in which thread. Pure.
 *
 * A chat is one person in one thread: `ana@example.com#3f2a…`, the address and a hash of the Message-ID that began
 * the thread. So two threads of one person are two conversations, as she sees them, while `ctx.user` is the person's.
 * A chat id may also be the bare address: a thread that the bot begins, and what is answered in it.
 *
 * The Message-IDs that the bot gives carry the chat's thread: an answer finds its chat even if the writer's program
 * keeps only In-Reply-To.
 */
import { hash } from 'node:crypto'

export interface ChatParts {
  address: string
  /** Null: a thread that the bot began. */
  thread: string | null
}

/** What makes a Message-ID the bot's own. */
export interface OwnMark {
  /** From the provider's id; see options.ts. */
  tag: string
  domain: string
}

const MAX_ADDRESS_CHARS = 254
const ADDRESS = /^[^\s@<>()[\],;:"\\#]{1,64}@[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/i
const THREAD = /^[0-9a-f]{16}$/
const NO_THREAD = '0'
const MAX_IDS = 200
const MAX_ID_CHARS = 400

/** @returns the address in lower case, or null if it is not one that mail can be sent to without guessing. */
export function readAddress(text: string): string | null {
  const address = text.trim().toLowerCase()
  return address.length <= MAX_ADDRESS_CHARS && ADDRESS.test(address) ? address : null
}

export function chatIdOf({ address, thread }: ChatParts): string {
  return thread === null ? address : `${address}#${thread}`
}

/** @returns null if no mail can be sent there. */
export function readChatId(chatId: string): ChatParts | null {
  const at = chatId.indexOf('#')
  const address = readAddress(at < 0 ? chatId : chatId.slice(0, at))
  const thread = at < 0 ? null : chatId.slice(at + 1)
  if (address === null || (thread !== null && !THREAD.test(thread))) return null
  return { address, thread }
}

/** The thread that began with this Message-ID. */
export function threadOf(rootId: string): string {
  return hash('sha256', rootId).slice(0, 16)
}

/** @param unique letters, digits and hyphens. @returns without angle brackets */
export function ownId(mark: OwnMark, thread: string | null, unique: string): string {
  return `${thread ?? NO_THREAD}.${unique}.${mark.tag}@${mark.domain}`
}

/** @returns the thread that a Message-ID of this bot carries; undefined if it is not this bot's. */
export function threadInOwnId(mark: OwnMark, id: string): string | null | undefined {
  const end = `.${mark.tag}@${mark.domain}`
  if (!id.toLowerCase().endsWith(end)) return undefined
  const thread = id.slice(0, id.indexOf('.')).toLowerCase()
  return thread === NO_THREAD ? null : THREAD.test(thread) ? thread : undefined
}

/** Message-IDs in a header such as References, without their brackets; the first and the last ones of very many. */
export function readIds(header: string): string[] {
  const ids = (header.slice(0, MAX_IDS * MAX_ID_CHARS).match(/<[^<>\s]+>/g) ?? [])
    .map((one) => one.slice(1, -1))
    .filter((one) => one.length <= MAX_ID_CHARS)
  return ids.length <= MAX_IDS ? ids : [ids[0]!, ...ids.slice(1 - MAX_IDS)]
}

/**
 * The thread of a mail: as the bot's own Message-IDs say, the newest first, else by the one that began it.
 * @param answered In-Reply-To, then References, as in their headers
 */
export function threadOfMail(
  mark: OwnMark,
  mail: { id: string; inReplyTo: readonly string[]; references: readonly string[] },
): string | null {
  for (const id of [...mail.inReplyTo, ...mail.references.toReversed()]) {
    const thread = threadInOwnId(mark, id)
    if (thread !== undefined) return thread
  }
  return threadOf(mail.references[0] ?? mail.inReplyTo[0] ?? mail.id)
}
