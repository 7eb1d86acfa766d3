/**
 * Webhook bodies of Messenger and Instagram → neutral messages and receipts. Pure. Lenient: what is malformed or
 * unknown becomes an `ignored` event with its reason, so that one odd entry never costs its neighbours.
 */
import type { Message } from '@botmesh/core'
import type { CommonEvent } from '../webhook-provider.js'
import { contentsOf } from './page-attachments.js'
import {
  readDelivery,
  readEdit,
  readEnforcement,
  readEntry,
  readEnvelope,
  readHead,
  readMessage,
  readPostback,
  readReaction,
  readRead,
} from './page-schema.js'
import type { PagePlatform } from './platform.js'

/** What became of messages sent earlier. */
export interface PageReceipt {
  kind: 'delivered' | 'read'
  chatId: string
  /** Ids of the messages, as `send` returned them, if the platform names them. */
  messageIds: string[]
  /** All messages sent until then are meant (Messenger). Milliseconds since the epoch. */
  until?: number
  /** Milliseconds since the epoch. */
  timestamp: number
}

export type PageEvent = CommonEvent | { kind: 'receipt'; receipt: PageReceipt }

export interface PageContext {
  platform: PagePlatform
  /** The page's or account's id: events for others are ignored. */
  accountId: string
  /** Corrections of a message by its writer: as messages with `editOf`, or not at all. */
  edits: 'ignore' | 'deliver'
}

/** `parsePage` for one messenger: what its package calls `parseInbound`. @param options.edits default `'ignore'`. */
export function inboundParser(platform: PagePlatform) {
  return (body: unknown, accountId: string, options: Partial<Pick<PageContext, 'edits'>> = {}): PageEvent[] =>
    parsePage(body, { platform, accountId, edits: options.edits ?? 'ignore' })
}

/** Events of one webhook body, in the platform's order. Never throws. */
export function parsePage(body: unknown, context: PageContext): PageEvent[] {
  const envelope = readEnvelope(body)
  if (envelope === undefined) return [ignored('not a webhook body of the platform')]
  if (envelope.object !== context.platform.object) {
    return [ignored(`object "${short(envelope.object)}"`)]
  }
  const events: PageEvent[] = []
  for (const entry of envelope.entry) addEntry(entry, context, events)
  return events
}

/** @param events to which those of the entry are added. */
function addEntry(source: unknown, context: PageContext, events: PageEvent[]): void {
  const entry = readEntry(source)
  if (entry === undefined || entry.id !== context.accountId) {
    events.push(ignored(entry === undefined ? 'malformed entry' : `for account ${short(entry.id)}`))
    return
  }
  const { messaging = [], standby = [], changes = [] } = entry
  for (const raw of messaging) {
    for (const event of parseEvent(raw, entry.time, context)) events.push(event)
  }
  for (const _ of standby) events.push(ignored('standby: another app has this conversation'))
  for (const { field = '?' } of changes) events.push(ignored(`event type "${short(field)}"`))
}

/** What all events of one person have in common. */
interface Head {
  from: string
  timestamp: number
  /** The event as it came. */
  raw: unknown
}

/** The events that are told apart by a field of that name. */
const PARSERS: ReadonlyMap<string, (value: unknown, head: Head, context: PageContext) => PageEvent[]> =
  new Map([
    ['message', parseMessage],
    ['postback', parsePostback],
    ['reaction', parseReaction],
    ['message_edit', parseEdit],
    ['delivery', parseDelivery],
    ['read', parseRead],
  ])

function parseEvent(raw: unknown, time: number | undefined, context: PageContext): PageEvent[] {
  if (typeof raw !== 'object' || raw === null) return [ignored('malformed event')]
  const fields = raw as Record<string, unknown>
  if (fields['policy_enforcement'] !== undefined) return [parseEnforcement(fields['policy_enforcement'])]
  const data = readHead(raw)
  if (data === undefined) return [ignored('malformed event')]
  const field = Object.keys(fields).find((name) => PARSERS.has(name))
  if (field === undefined) {
    const others = Object.keys(fields).filter((name) => !HEAD_FIELDS.has(name))
    return [ignored(`event type "${short(others.join('+'))}"`)]
  }
  if (data.sender.id === context.accountId) return [ignored('written by this account')]
  const head = { from: data.sender.id, timestamp: millisecondsOf(data.timestamp ?? time), raw }
  return PARSERS.get(field)!(fields[field], head, context)
}

const HEAD_FIELDS = new Set(['sender', 'recipient', 'timestamp'])

function parseMessage(value: unknown, head: Head): PageEvent[] {
  const data = readMessage(value)
  if (data === undefined) return [ignored('malformed message')]
  if (data.is_echo === true || data.is_self === true) return [ignored('written by this account')]
  if (data.is_deleted === true) return [ignored('a message was taken back')]
  const { mid, text: words, quick_reply: tapped, attachments } = data
  const quotedId = data.reply_to?.mid
  if (tapped !== undefined) {
    return [message(mid, head, { type: 'button', body: words ?? '', buttonId: tapped.payload, quotedId })]
  }
  // The platform puts several files into one message: each becomes one of its own, the first with the text.
  return contentsOf(words, attachments ?? []).map(({ type, body, media }, index) =>
    message(index === 0 ? mid : `${mid}#${index + 1}`, head, { type, body, media, quotedId }),
  )
}

function parsePostback(value: unknown, head: Head): PageEvent[] {
  const data = readPostback(value)
  if (data === undefined) return [ignored('malformed postback')]
  const { title = '', payload = title, mid = `postback:${head.from}:${head.timestamp}` } = data
  return [message(mid, head, { type: 'button', body: title === '' ? payload : title, buttonId: payload })]
}

function parseReaction(value: unknown, head: Head): PageEvent[] {
  const data = readReaction(value)
  if (data === undefined) return [ignored('malformed reaction')]
  // Taken back: an empty body, as on the other transports.
  const body = data.action === 'unreact' ? '' : (data.emoji ?? data.reaction ?? '')
  const reactionId = `reaction:${data.mid}:${head.from}:${head.timestamp}`
  return [message(reactionId, head, { type: 'reaction', body, quotedId: data.mid })]
}

function parseEdit(value: unknown, head: Head, context: PageContext): PageEvent[] {
  const data = readEdit(value)
  if (data === undefined) return [ignored('malformed correction')]
  // Number 0 is the message as it was first written, which comes as a message of its own.
  if (context.edits === 'ignore' || data.num_edit < 1) return [ignored('a correction')]
  return [
    message(`${data.mid}#edit${data.num_edit}`, head, { type: 'text', body: data.text, editOf: data.mid }),
  ]
}

function parseDelivery(value: unknown, head: Head): PageEvent[] {
  const data = readDelivery(value)
  if (data === undefined) return [ignored('malformed delivery')]
  return [receipt('delivered', head, data.mids ?? [], data.watermark)]
}

function parseRead(value: unknown, head: Head): PageEvent[] {
  const data = readRead(value)
  if (data === undefined) return [ignored('malformed read event')]
  return [receipt('read', head, data.mid === undefined ? [] : [data.mid], data.watermark)]
}

function parseEnforcement(value: unknown): PageEvent {
  const data = readEnforcement(value)
  if (data === undefined) return ignored('malformed policy notice')
  if (data.action !== 'block') return ignored(`policy notice "${short(data.action)}"`)
  return { kind: 'problem', code: 'policy_enforcement', title: data.reason ?? '' }
}

interface Content extends Pick<Message, 'type' | 'body'> {
  media?: Message['media'] | undefined
  buttonId?: string
  quotedId?: string | undefined
  editOf?: string
}

function message(id: string, head: Head, content: Content): PageEvent {
  const { from, timestamp, raw } = head
  const { type, body, media, buttonId, quotedId, editOf } = content
  const made: Message = { id, chatId: from, from, isGroup: false, timestamp, type, body, raw }
  if (media !== undefined) made.media = media
  if (buttonId !== undefined) made.buttonId = buttonId
  if (quotedId !== undefined) made.quotedId = quotedId
  if (editOf !== undefined) made.editOf = editOf
  return { kind: 'message', message: made }
}

function receipt(
  kind: PageReceipt['kind'],
  { from, timestamp }: Head,
  messageIds: string[],
  until: number | undefined,
): PageEvent {
  const range = until === undefined ? {} : { until }
  return { kind: 'receipt', receipt: { kind, chatId: from, messageIds, ...range, timestamp } }
}

function ignored(reason: string): PageEvent {
  return { kind: 'ignored', reason }
}

/** 0 if the platform sent nonsense. */
function millisecondsOf(value: number | undefined): number {
  return value !== undefined && Number.isSafeInteger(value) && value > 0 ? value : 0
}

/** A foreign word as a log may show it. */
function short(word: string): string {
  return word.slice(0, 40)
}
