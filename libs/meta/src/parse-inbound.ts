/**
 * WhatsApp Cloud API webhook bodies → neutral messages and statuses. Pure. Lenient: what is malformed or unknown
 * becomes an `ignored` event with its reason, so that one odd entry never costs its neighbours.
 */
import type { Message } from '@botmesh/core'
import { parseContent } from './parse-content.js'
import type { CommonEvent } from './webhook-provider.js'
import { readEnvelope, readError, readHead, readStatus, readValue } from './webhook-schema.js'

/** What became of a message sent earlier. */
export interface MetaStatus {
  /** Id of the message, as `send` returned it. */
  messageId: string
  status: 'sent' | 'delivered' | 'read' | 'failed' | 'played' | (string & {})
  recipientId: string
  /** Milliseconds since the epoch. */
  timestamp: number
  /** The `idempotencyKey` of the send, if it had one: settles a send whose answer was lost (scenario 16). */
  sendKey?: string
  error?: { code: number; title: string; details?: string }
}

export type MetaEvent = CommonEvent | { kind: 'status'; status: MetaStatus }

/** What the platform tells about itself, not what a user says. */
const SERVICE_TYPES = new Set(['system', 'request_welcome', 'ephemeral'])

/** Events of one webhook body, in the platform's order. Never throws. */
export function parseInbound(body: unknown, phoneNumberId: string): MetaEvent[] {
  const envelope = readEnvelope(body)
  if (envelope === undefined) return [{ kind: 'ignored', reason: 'not a webhook body of the platform' }]
  if (envelope.object !== 'whatsapp_business_account') {
    return [{ kind: 'ignored', reason: `object "${short(envelope.object)}"` }]
  }
  const events: MetaEvent[] = []
  for (const { changes } of envelope.entry) {
    for (const { field, value } of changes) {
      if (field === 'messages') readChange(value, phoneNumberId, events)
      else events.push({ kind: 'ignored', reason: `event type "${short(field)}"` })
    }
  }
  return events
}

/** @param events to which those of the change are added. */
function readChange(value: unknown, phoneNumberId: string, events: MetaEvent[]): void {
  const change = readValue(value)
  if (change === undefined) {
    events.push({ kind: 'ignored', reason: 'malformed change' })
    return
  }
  const { metadata, contacts = [], messages = [], statuses = [], errors = [] } = change
  if (metadata.phone_number_id !== phoneNumberId) {
    events.push({ kind: 'ignored', reason: `for phone number id ${short(metadata.phone_number_id)}` })
    return
  }
  const names: Names = new Map()
  for (const { wa_id: number, user_id: userId, profile } of contacts) {
    names.set(number, profile?.name)
    names.set(userId, profile?.name)
  }
  const own = metadata.display_phone_number === undefined ? undefined : digits(metadata.display_phone_number)
  for (const raw of messages) events.push(parseMessage(raw, names, own))
  for (const raw of statuses) events.push(parseStatus(raw))
  for (const raw of errors) events.push(parseProblem(raw))
}

type Names = Map<string | undefined, string | undefined>

/** @param own digits of the number that the messages were sent to. */
function parseMessage(raw: unknown, names: Names, own: string | undefined): MetaEvent {
  const head = readHead(raw)
  // Who hides their number has only the id that was made for this business.
  const from = head?.from ?? head?.from_user_id
  if (head === undefined || from === undefined) return { kind: 'ignored', reason: 'malformed message' }
  if (SERVICE_TYPES.has(head.type)) return { kind: 'ignored', reason: `message type "${head.type}"` }
  if (own !== undefined && digits(from) === own) return { kind: 'ignored', reason: 'written by this number' }
  const content = parseContent(head.type, raw)
  if (content === undefined) return { kind: 'ignored', reason: `malformed ${short(head.type)} message` }
  const { type, body, media, buttonId, quotedId = head.context?.id } = content
  const { id, group_id: group } = head
  const isGroup = group !== undefined
  const timestamp = milliseconds(head.timestamp)
  const message: Message = { id, chatId: group ?? from, from, isGroup, timestamp, type, body, raw }
  const fromName = names.get(from)
  if (fromName !== undefined) message.fromName = fromName
  if (isGroup) message.participant = from
  if (media !== undefined) message.media = media
  if (buttonId !== undefined) message.buttonId = buttonId
  if (quotedId !== undefined) message.quotedId = quotedId
  return { kind: 'message', message }
}

function parseStatus(raw: unknown): MetaEvent {
  const data = readStatus(raw)
  if (data === undefined) return { kind: 'ignored', reason: 'malformed status' }
  const error = data.errors?.[0]
  return {
    kind: 'status',
    status: {
      messageId: data.id,
      status: data.status,
      recipientId: data.recipient_id ?? data.recipient_user_id ?? '',
      timestamp: milliseconds(data.timestamp),
      ...(data.biz_opaque_callback_data === undefined ? {} : { sendKey: data.biz_opaque_callback_data }),
      ...(error === undefined
        ? {}
        : {
            error: {
              code: error.code,
              title: error.title ?? '',
              ...(error.error_data?.details === undefined ? {} : { details: error.error_data.details }),
            },
          }),
    },
  }
}

function parseProblem(raw: unknown): MetaEvent {
  const data = readError(raw)
  return data === undefined
    ? { kind: 'ignored', reason: 'malformed error' }
    : { kind: 'problem', code: data.code, title: data.title ?? '' }
}

/** The platform sends seconds, as text; 0 if it sent nonsense. */
function milliseconds(seconds: string | number | undefined): number {
  const value = Number(seconds) * 1000
  return Number.isSafeInteger(value) && value > 0 ? value : 0
}

function digits(number: string): string {
  return number.replace(/[^\d-]/g, '')
}

/** A foreign word as a log may show it. */
function short(word: string): string {
  return word.slice(0, 40)
}
