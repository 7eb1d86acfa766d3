/**
 * Which mail is not for a bot to answer. Pure. Machines that answer machines fill mailboxes, so what nobody wrote by
 * hand is left alone: automatic answers, bounces, lists, addresses that nobody reads, and the bot's own mail.
 */
import { threadInOwnId, type OwnMark } from './addresses.js'
import type { Mail } from './read-mail.js'

/** Header that names the bot which sent a mail. */
export const BOT_HEADER = 'x-botmesh-bot'

export interface Self extends OwnMark {
  /** `provider.id`. */
  id: string
  /** Its addresses, in lower case. */
  own: ReadonlySet<string>
}

const NO_REPLY =
  /^(no|not|do|dont|donot|never|please-do)[-_.]?(not[-_.]?)?(reply|respond|answer)|^no[-_.]?(responder|contestar|responda|replay)|(^|[-_.+])no-?reply($|[-_.+])|^nao[-_.]?responda|^ne[-_.]?pas[-_.]?repondre|^noreply/
const DAEMON =
  /^(mailer-daemon|mail-daemon|postmaster|mailerdaemon|bounces?|listserv|majordomo|owner-.*|.*-bounces?)([+=].*)?$/
const LIST_HEADERS = [
  'list-id',
  'list-post',
  'list-unsubscribe',
  'list-help',
  'mailing-list',
  'x-mailing-list',
]
const AUTOMATIC_HEADERS = [
  'x-autoreply',
  'x-autorespond',
  'x-autoresponse',
  'x-auto-reply',
  'x-mail-autoreply',
]
/** Of X-Auto-Response-Suppress: delivery and read receipts (DR, RN, NRN) do not concern a bot. */
const SUPPRESSED = /\b(all|autoreply|oof)\b/i

/** @returns why this mail is not answered, in a few words; null if it is for the bot. */
export function whyNotAnswered(mail: Mail, self: Self): string | null {
  return ownMail(mail, self) ?? bounce(mail) ?? automatic(mail) ?? list(mail) ?? nobodyThere(mail)
}

function ownMail(mail: Mail, self: Self): string | null {
  const ours =
    mail.headers.get(BOT_HEADER)?.trim() === self.id ||
    threadInOwnId(self, mail.id) !== undefined ||
    (mail.from !== null && self.own.has(mail.from.address))
  return ours ? 'it is the bot’s own mail' : null
}

function bounce({ headers, from }: Mail): string | null {
  const isBounce =
    headers.get('return-path')?.trim() === '<>' ||
    /^\s*multipart\/report\b/i.test(headers.get('content-type') ?? '') ||
    headers.has('x-failed-recipients') ||
    (from !== null && DAEMON.test(localPart(from.address)))
  return isBounce ? 'it reports a delivery' : null
}

function automatic({ headers }: Mail): string | null {
  const submitted = headers.get('auto-submitted')?.trim().toLowerCase()
  const isAutomatic =
    (submitted !== undefined && !/^no(\s|;|$)/.test(submitted)) ||
    SUPPRESSED.test(headers.get('x-auto-response-suppress') ?? '') ||
    /^\s*(bulk|junk|auto_reply)\b/i.test(headers.get('precedence') ?? '') ||
    /^\s*yes\b/i.test(headers.get('x-spam-flag') ?? '') ||
    AUTOMATIC_HEADERS.some((name) => headers.has(name))
  return isAutomatic ? 'it is an automatic mail' : null
}

function list({ headers }: Mail): string | null {
  const isList =
    LIST_HEADERS.some((name) => headers.has(name)) || /^\s*list\b/i.test(headers.get('precedence') ?? '')
  return isList ? 'it is from a mailing list' : null
}

function nobodyThere(mail: Mail): string | null {
  // A contact form writes from such an address, and names the person in Reply-To: that one can be answered.
  const peer = mail.replyTo ?? mail.from
  if (peer === null) return 'it has no sender that can be answered'
  return NO_REPLY.test(localPart(peer.address)) ? 'nobody reads what is sent to its sender' : null
}

function localPart(address: string): string {
  return address.slice(0, address.lastIndexOf('@'))
}
