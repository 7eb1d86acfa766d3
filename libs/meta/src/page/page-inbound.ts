/**
 * Webhook bodies of Messenger and Instagram → neutral messages and receipts. Pure. Lenient: what is malformed or
 * unknown becomes an `ignored` event with its reason, so that one odd entry never costs its neighbours.
 */
import type { Message } from '@botmesh/core'
import { z } from 'zod'
import type { CommonEvent } from '../webhook-provider.js'
import { contentsOf } from './page-attachments.js'
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

const text = z.string()
const id = text.min(1)
const optional = z.string().optional().catch(undefined)
const moment = z.number().optional().catch(undefined)

const envelopeSchema = z.object({ object: text, entry: z.array(z.unknown()) })
const entrySchema = z.object({
  id,
  time: moment,
  messaging: z.array(z.unknown()).catch([]).default([]),
  standby: z.array(z.unknown()).catch([]).default([]),
  changes: z
    .array(z.object({ field: text.catch('?') }))
    .catch([])
    .default([]),
})
const headSchema = z.object({ sender: z.object({ id }), timestamp: moment })

const messageSchema = z.object({
  mid: id,
  text: optional,
  is_echo: z.boolean().optional().catch(undefined),
  is_deleted: z.boolean().optional().catch(undefined),
  is_self: z.boolean().optional().catch(undefined),
  quick_reply: z.object({ payload: text }).optional().catch(undefined),
  reply_to: z.object({ mid: optional }).optional().catch(undefined),
  attachments: z.array(z.unknown()).catch([]).default([]),
})
const postbackSchema = z.object({ mid: optional, title: text.catch(''), payload: optional })
const reactionSchema = z.object({ mid: id, action: optional, emoji: optional, reaction: optional })
const editSchema = z.object({ mid: id, text, num_edit: z.coerce.number() })
const deliverySchema = z.object({ mids: z.array(text).catch([]).default([]), watermark: moment })
const readSchema = z.object({ mid: optional, watermark: moment })
const enforcementSchema = z.object({ action: text, reason: text.catch('') })

/** `parsePage` for one messenger: what its package calls `parseInbound`. @param options.edits default `'ignore'`. */
export function inboundParser(platform: PagePlatform) {
  return (body: unknown, accountId: string, options: Partial<Pick<PageContext, 'edits'>> = {}): PageEvent[] =>
    parsePage(body, { platform, accountId, edits: options.edits ?? 'ignore' })
}

/** Events of one webhook body, in the platform's order. Never throws. */
export function parsePage(body: unknown, context: PageContext): PageEvent[] {
  const envelope = envelopeSchema.safeParse(body)
  if (!envelope.success) return [ignored('not a webhook body of the platform')]
  if (envelope.data.object !== context.platform.object) {
    return [ignored(`object "${short(envelope.data.object)}"`)]
  }
  return envelope.data.entry.flatMap((entry) => parseEntry(entry, context))
}

function parseEntry(raw: unknown, context: PageContext): PageEvent[] {
  const { data: entry } = entrySchema.safeParse(raw)
  if (entry === undefined) return [ignored('malformed entry')]
  if (entry.id !== context.accountId) return [ignored(`for account ${short(entry.id)}`)]
  return [
    ...entry.messaging.flatMap((event) => parseEvent(event, entry.time, context)),
    ...entry.standby.map(() => ignored('standby: another app has this conversation')),
    ...entry.changes.map((change) => ignored(`event type "${short(change.field)}"`)),
  ]
}

/** What all events of one person have in common. */
interface Head {
  from: string
  timestamp: number
}

/** The events that are told apart by a field of that name. */
const PARSERS: Readonly<Record<string, (value: unknown, head: Head, context: PageContext) => PageEvent[]>> = {
  message: parseMessage,
  postback: parsePostback,
  reaction: parseReaction,
  message_edit: parseEdit,
  delivery: parseDelivery,
  read: parseRead,
}

function parseEvent(raw: unknown, time: number | undefined, context: PageContext): PageEvent[] {
  if (typeof raw !== 'object' || raw === null) return [ignored('malformed event')]
  const fields = raw as Record<string, unknown>
  if (fields['policy_enforcement'] !== undefined) return [parseEnforcement(fields['policy_enforcement'])]
  const { data } = headSchema.safeParse(raw)
  if (data === undefined) return [ignored('malformed event')]
  const field = Object.keys(fields).find((name) => Object.hasOwn(PARSERS, name))
  if (field === undefined) {
    const others = Object.keys(fields).filter((name) => !HEAD_FIELDS.has(name))
    return [ignored(`event type "${short(others.join('+'))}"`)]
  }
  if (data.sender.id === context.accountId) return [ignored('written by this account')]
  const head = { from: data.sender.id, timestamp: millisecondsOf(data.timestamp ?? time) }
  return PARSERS[field]!(fields[field], head, context).map((event) =>
    event.kind === 'message' ? { kind: 'message', message: { ...event.message, raw } } : event,
  )
}

const HEAD_FIELDS = new Set(['sender', 'recipient', 'timestamp'])

function parseMessage(value: unknown, head: Head): PageEvent[] {
  const { data } = messageSchema.safeParse(value)
  if (data === undefined) return [ignored('malformed message')]
  if (data.is_echo === true || data.is_self === true) return [ignored('written by this account')]
  if (data.is_deleted === true) return [ignored('a message was taken back')]
  const quoted = data.reply_to?.mid === undefined ? {} : { quotedId: data.reply_to.mid }
  if (data.quick_reply !== undefined) {
    const content = { type: 'button' as const, body: data.text ?? '', buttonId: data.quick_reply.payload }
    return [message(data.mid, head, { ...content, ...quoted })]
  }
  // The platform puts several files into one message: each becomes one of its own, the first with the text.
  return contentsOf(data.text, data.attachments).map((content, index) =>
    message(index === 0 ? data.mid : `${data.mid}#${index + 1}`, head, { ...content, ...quoted }),
  )
}

function parsePostback(value: unknown, head: Head): PageEvent[] {
  const { data } = postbackSchema.safeParse(value)
  if (data === undefined) return [ignored('malformed postback')]
  const { title, payload = title, mid = `postback:${head.from}:${head.timestamp}` } = data
  return [message(mid, head, { type: 'button', body: title === '' ? payload : title, buttonId: payload })]
}

function parseReaction(value: unknown, head: Head): PageEvent[] {
  const { data } = reactionSchema.safeParse(value)
  if (data === undefined) return [ignored('malformed reaction')]
  // Taken back: an empty body, as on the other transports.
  const body = data.action === 'unreact' ? '' : (data.emoji ?? data.reaction ?? '')
  const reactionId = `reaction:${data.mid}:${head.from}:${head.timestamp}`
  return [message(reactionId, head, { type: 'reaction', body, quotedId: data.mid })]
}

function parseEdit(value: unknown, head: Head, context: PageContext): PageEvent[] {
  const { data } = editSchema.safeParse(value)
  if (data === undefined) return [ignored('malformed correction')]
  // Number 0 is the message as it was first written, which comes as a message of its own.
  if (context.edits === 'ignore' || data.num_edit < 1) return [ignored('a correction')]
  return [
    message(`${data.mid}#edit${data.num_edit}`, head, { type: 'text', body: data.text, editOf: data.mid }),
  ]
}

function parseDelivery(value: unknown, head: Head): PageEvent[] {
  const { data } = deliverySchema.safeParse(value)
  if (data === undefined) return [ignored('malformed delivery')]
  return [receipt('delivered', head, data.mids, data.watermark)]
}

function parseRead(value: unknown, head: Head): PageEvent[] {
  const { data } = readSchema.safeParse(value)
  if (data === undefined) return [ignored('malformed read event')]
  return [receipt('read', head, data.mid === undefined ? [] : [data.mid], data.watermark)]
}

function parseEnforcement(value: unknown): PageEvent {
  const { data } = enforcementSchema.safeParse(value)
  if (data === undefined) return ignored('malformed policy notice')
  if (data.action !== 'block') return ignored(`policy notice "${short(data.action)}"`)
  return { kind: 'problem', code: 'policy_enforcement', title: data.reason }
}

type Content = Pick<Message, 'type' | 'body'> &
  Partial<Pick<Message, 'media' | 'buttonId' | 'quotedId' | 'editOf'>>

function message(messageId: string, { from, timestamp }: Head, content: Content): PageEvent {
  return {
    kind: 'message',
    message: { id: messageId, chatId: from, from, isGroup: false, timestamp, ...content },
  }
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
