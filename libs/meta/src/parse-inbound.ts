/**
 * WhatsApp Cloud API webhook bodies → neutral messages and statuses. Pure. Lenient: what is malformed or unknown
 * becomes an `ignored` event with its reason, so that one odd entry never costs its neighbours.
 */
import type { Media, Message } from '@botmesh/core'
import { z } from 'zod'

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

export type MetaEvent =
  | { kind: 'message'; message: Message }
  | { kind: 'status'; status: MetaStatus }
  | { kind: 'problem'; code: number; title: string }
  | { kind: 'ignored'; reason: string }

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
    .array(z.object({ wa_id: optional, profile: z.object({ name: optional }).optional() }))
    .catch([])
    .default([]),
  messages: z.array(z.unknown()).catch([]).default([]),
  statuses: z.array(z.unknown()).catch([]).default([]),
  errors: z.array(z.unknown()).catch([]).default([]),
})

const headSchema = z.object({
  id: text.min(1),
  from: text.min(1),
  timestamp: z.union([text, z.number()]).optional().catch(undefined),
  type: text,
  group_id: optional,
  context: z.object({ id: optional }).optional().catch(undefined),
})

const mediaSchema = z.object({
  id: text,
  mime_type: optional,
  caption: optional,
  filename: optional,
  file_size: z.number().optional().catch(undefined),
})
const choiceSchema = z.object({ id: text, title: text })
const bodySchemas = {
  text: z.object({ text: z.object({ body: text }) }),
  button: z.object({ button: z.object({ text, payload: optional }) }),
  interactive: z.object({
    interactive: z.object({
      button_reply: choiceSchema.optional(),
      list_reply: choiceSchema.optional(),
      nfm_reply: z.object({ body: optional, response_json: optional }).optional(),
    }),
  }),
  location: z.object({
    location: z.object({ latitude: z.number(), longitude: z.number(), name: optional, address: optional }),
  }),
  contacts: z.object({
    contacts: z.array(
      z.object({
        name: z.object({ formatted_name: optional }).optional().catch(undefined),
        phones: z
          .array(z.object({ phone: optional }))
          .catch([])
          .default([]),
      }),
    ),
  }),
  reaction: z.object({ reaction: z.object({ message_id: text, emoji: optional }) }),
}

const statusSchema = z.object({
  id: text,
  status: text,
  recipient_id: text.catch(''),
  timestamp: z.union([text, z.number()]).optional().catch(undefined),
  biz_opaque_callback_data: optional,
  errors: z.array(errorSchema).catch([]).default([]),
})

const MEDIA_KINDS: readonly Media['kind'][] = ['image', 'audio', 'video', 'document', 'sticker']
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
  const names = new Map(contacts.map((contact) => [contact.wa_id, contact.profile?.name]))
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
  if (!parsed.success) return { kind: 'ignored', reason: 'malformed message' }
  const head = parsed.data
  if (SERVICE_TYPES.has(head.type)) return { kind: 'ignored', reason: `message type "${head.type}"` }
  if (digits(head.from) === digits(ownNumber ?? '-'))
    return { kind: 'ignored', reason: 'written by this number' }
  const content = parseContent(head.type, raw)
  if (content === undefined) return { kind: 'ignored', reason: `malformed ${short(head.type)} message` }
  const fromName = names.get(head.from)
  const quotedId = content.quotedId ?? head.context?.id
  return {
    kind: 'message',
    message: {
      id: head.id,
      chatId: head.group_id ?? head.from,
      from: head.from,
      ...(fromName === undefined ? {} : { fromName }),
      isGroup: head.group_id !== undefined,
      ...(head.group_id === undefined ? {} : { participant: head.from }),
      timestamp: milliseconds(head.timestamp),
      ...content,
      ...(quotedId === undefined ? {} : { quotedId }),
      raw,
    },
  }
}

type Content = Pick<Message, 'type' | 'body'> & Partial<Pick<Message, 'media' | 'buttonId' | 'quotedId'>>

function parseContent(type: string, raw: unknown): Content | undefined {
  const kind = MEDIA_KINDS.find((one) => one === type)
  if (kind !== undefined) return parseMedia(kind, raw)
  switch (type) {
    case 'text': {
      const { data } = bodySchemas.text.safeParse(raw)
      return data && { type: 'text', body: data.text.body }
    }
    case 'button': {
      const { data } = bodySchemas.button.safeParse(raw)
      return (
        data && { type: 'button', body: data.button.text, buttonId: data.button.payload ?? data.button.text }
      )
    }
    case 'interactive':
      return parseInteractive(raw)
    case 'location': {
      const { data } = bodySchemas.location.safeParse(raw)
      if (data === undefined) return undefined
      const { latitude, longitude, name, address } = data.location
      return {
        type: 'location',
        body: [name, address, `${latitude},${longitude}`].filter(Boolean).join('\n'),
      }
    }
    case 'contacts': {
      const { data } = bodySchemas.contacts.safeParse(raw)
      const lines = data?.contacts.map((one) =>
        [one.name?.formatted_name, ...one.phones.map((phone) => phone.phone)].filter(Boolean).join(' '),
      )
      return lines && { type: 'contact', body: lines.join('\n') }
    }
    case 'reaction': {
      const { data } = bodySchemas.reaction.safeParse(raw)
      // Without an emoji the reaction was taken back.
      return data && { type: 'reaction', body: data.reaction.emoji ?? '', quotedId: data.reaction.message_id }
    }
    default:
      // Orders, unsupported kinds and what the platform adds later: the bot may still answer "not understood".
      return { type: 'other', body: '' }
  }
}

function parseInteractive(raw: unknown): Content | undefined {
  const { data } = bodySchemas.interactive.safeParse(raw)
  if (data === undefined) return undefined
  const choice = data.interactive.button_reply ?? data.interactive.list_reply
  if (choice !== undefined) return { type: 'button', body: choice.title, buttonId: choice.id }
  return { type: 'other', body: data.interactive.nfm_reply?.body ?? '' }
}

function parseMedia(kind: Media['kind'], raw: unknown): Content | undefined {
  const { data } = mediaSchema.safeParse((raw as Record<string, unknown>)[kind])
  if (data === undefined) return undefined
  const media: Media = { kind, id: data.id }
  if (data.mime_type !== undefined) media.mimeType = data.mime_type
  if (data.filename !== undefined) media.fileName = data.filename
  if (data.caption !== undefined) media.caption = data.caption
  if (data.file_size !== undefined) media.sizeBytes = data.file_size
  return { type: 'media', body: data.caption ?? '', media }
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
      recipientId: data.recipient_id,
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
