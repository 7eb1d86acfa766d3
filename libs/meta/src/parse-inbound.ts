/**
 * WhatsApp Cloud API webhook bodies → neutral messages and statuses. Pure. Lenient: what is malformed or unknown
 * becomes an `ignored` event with its reason, so that one odd entry never costs its neighbours.
 */
import { z } from 'zod'
import { parseContent } from './parse-content.js'
import type { CommonEvent } from './webhook-provider.js'

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

const text = z.string()
const optional = z.string().optional().catch(undefined)

const envelopeSchema = z.object({
  object: text,
  entry: z.array(z.object({ changes: z.array(z.object({ field: text, value: z.unknown() })) })),
})

const errorSchema = z.object({
  code: z.number(),
  title: text.catch(''),
  error_data: z.object({ details: optional }).optional().catch(undefined),
})

const valueSchema = z.object({
  metadata: z.object({ phone_number_id: text, display_phone_number: optional }),
  contacts: z
    .array(z.object({ wa_id: optional, user_id: optional, profile: z.object({ name: optional }).optional() }))
    .catch([])
    .default([]),
  messages: z.array(z.unknown()).catch([]).default([]),
  statuses: z.array(z.unknown()).catch([]).default([]),
  errors: z.array(z.unknown()).catch([]).default([]),
})

const headSchema = z.object({
  id: text.min(1),
  from: text.min(1).optional(),
  from_user_id: text.min(1).optional(),
  timestamp: z.union([text, z.number()]).optional().catch(undefined),
  type: text,
  group_id: optional,
  context: z.object({ id: optional }).optional().catch(undefined),
})

const statusSchema = z.object({
  id: text,
  status: text,
  recipient_id: optional,
  recipient_user_id: optional,
  timestamp: z.union([text, z.number()]).optional().catch(undefined),
  biz_opaque_callback_data: optional,
  errors: z.array(errorSchema).catch([]).default([]),
})

/** What the platform tells about itself, not what a user says. */
const SERVICE_TYPES = new Set(['system', 'request_welcome', 'ephemeral'])

/** Events of one webhook body, in the platform's order. Never throws. */
export function parseInbound(body: unknown, phoneNumberId: string): MetaEvent[] {
  const envelope = envelopeSchema.safeParse(body)
  if (!envelope.success) return [{ kind: 'ignored', reason: 'not a webhook body of the platform' }]
  if (envelope.data.object !== 'whatsapp_business_account') {
    return [{ kind: 'ignored', reason: `object "${short(envelope.data.object)}"` }]
  }
  return envelope.data.entry
    .flatMap((entry) => entry.changes)
    .flatMap((change) =>
      change.field === 'messages'
        ? parseChange(change.value, phoneNumberId)
        : [{ kind: 'ignored' as const, reason: `event type "${short(change.field)}"` }],
    )
}

function parseChange(value: unknown, phoneNumberId: string): MetaEvent[] {
  const parsed = valueSchema.safeParse(value)
  if (!parsed.success) return [{ kind: 'ignored', reason: 'malformed change' }]
  const { metadata, contacts, messages, statuses, errors } = parsed.data
  if (metadata.phone_number_id !== phoneNumberId) {
    return [{ kind: 'ignored', reason: `for phone number id ${short(metadata.phone_number_id)}` }]
  }
  const names = new Map(
    contacts.flatMap(({ wa_id, user_id, profile }) => [
      [wa_id, profile?.name],
      [user_id, profile?.name],
    ]),
  )
  return [
    ...messages.map((raw) => parseMessage(raw, names, metadata.display_phone_number)),
    ...statuses.map(parseStatus),
    ...errors.map(parseProblem),
  ]
}

function parseMessage(
  raw: unknown,
  names: ReadonlyMap<string | undefined, string | undefined>,
  ownNumber: string | undefined,
): MetaEvent {
  const parsed = headSchema.safeParse(raw)
  // Who hides their number has only the id that was made for this business.
  const from = parsed.data?.from ?? parsed.data?.from_user_id
  if (!parsed.success || from === undefined) return { kind: 'ignored', reason: 'malformed message' }
  const head = parsed.data
  if (SERVICE_TYPES.has(head.type)) return { kind: 'ignored', reason: `message type "${head.type}"` }
  if (ownNumber !== undefined && digits(from) === digits(ownNumber))
    return { kind: 'ignored', reason: 'written by this number' }
  const content = parseContent(head.type, raw)
  if (content === undefined) return { kind: 'ignored', reason: `malformed ${short(head.type)} message` }
  const fromName = names.get(from)
  const quotedId = content.quotedId ?? head.context?.id
  return {
    kind: 'message',
    message: {
      id: head.id,
      chatId: head.group_id ?? from,
      from,
      ...(fromName === undefined ? {} : { fromName }),
      isGroup: head.group_id !== undefined,
      ...(head.group_id === undefined ? {} : { participant: from }),
      timestamp: milliseconds(head.timestamp),
      ...content,
      ...(quotedId === undefined ? {} : { quotedId }),
      raw,
    },
  }
}

function parseStatus(raw: unknown): MetaEvent {
  const { data } = statusSchema.safeParse(raw)
  if (data === undefined) return { kind: 'ignored', reason: 'malformed status' }
  const error = data.errors[0]
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
              title: error.title,
              ...(error.error_data?.details === undefined ? {} : { details: error.error_data.details }),
            },
          }),
    },
  }
}

function parseProblem(raw: unknown): MetaEvent {
  const { data } = errorSchema.safeParse(raw)
  return data === undefined
    ? { kind: 'ignored', reason: 'malformed error' }
    : { kind: 'problem', code: data.code, title: data.title }
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
