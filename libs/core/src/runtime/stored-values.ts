/**
 * For stores: values as they come back from a database, checked. What cannot be read is reported as damage, never
 * thrown in a loop. Messages and states are checked for their outer form only: the inside is the application's.
 */
import { z } from 'zod'
import type { ConversationMarker, FlowCheckpoint } from '../contracts/checkpoint-store.js'
import type { Message } from '../contracts/message.js'
import type { OutboxEntry } from '../contracts/outbox.js'
import type { Damage } from '../contracts/state-store.js'

const checkpointForm = z.looseObject({
  v: z.literal(1),
  name: z.string(),
  kind: z.enum(['flow', 'async']),
  visit: z.number(),
  state: z.record(z.string(), z.unknown()),
  fingerprint: z.string(),
  revision: z.string(),
})
const markerForm = z.looseObject({
  v: z.literal(1),
  name: z.string(),
  kind: z.enum(['flow', 'async']),
  reason: z.string(),
})
const messageForm = z.looseObject({ id: z.string(), chatId: z.string(), type: z.string(), body: z.string() })
const outboxForm = z.looseObject({ v: z.literal(1), key: z.string(), hash: z.string(), status: z.string() })
const userForm = z.record(z.string(), z.unknown())
const contentForm = z.record(z.string(), z.unknown()).or(z.string())
const sentForm = z.looseObject({ id: z.string() })
const sendStatus = z.enum(['intended', 'sent', 'failed', 'uncertain'])

/** Longest text that says what is wrong. */
const LONGEST_ERROR = 500

/** Reads one stored value; null and an entry in `damaged` if it is not what it should be. */
function read<T>(
  what: Damage['what'],
  key: string,
  json: string,
  form: z.ZodType,
  damaged: Damage[],
): T | null {
  try {
    return form.parse(JSON.parse(json)) as T
  } catch (error) {
    const text = error instanceof z.ZodError ? z.prettifyError(error) : String(error)
    damaged.push({ what, key, error: text.slice(0, LONGEST_ERROR) })
    return null
  }
}

/** What the form asks, at a tenth of its price: this is on the path of every message. */
function looksLikeCheckpoint(value: Partial<FlowCheckpoint> | null): value is FlowCheckpoint {
  return (
    typeof value === 'object' &&
    value !== null &&
    value.v === 1 &&
    typeof value.name === 'string' &&
    (value.kind === 'flow' || value.kind === 'async') &&
    typeof value.visit === 'number' &&
    typeof value.state === 'object' &&
    value.state !== null &&
    !Array.isArray(value.state) &&
    typeof value.fingerprint === 'string' &&
    typeof value.revision === 'string'
  )
}

/** @param key the chat's, for `damaged`. */
export function readStoredCheckpoint(key: string, json: string, damaged: Damage[]): FlowCheckpoint | null {
  try {
    const value = JSON.parse(json) as Partial<FlowCheckpoint> | null
    if (looksLikeCheckpoint(value)) return value
  } catch {
    // Worded below.
  }
  return read<FlowCheckpoint>('checkpoint', key, json, checkpointForm, damaged)
}

/** @param key the chat's, for `damaged`. */
export function readStoredMarker(key: string, json: string, damaged: Damage[]): ConversationMarker | null {
  return read<ConversationMarker>('marker', key, json, markerForm, damaged)
}

/** A user's state; `userId` for `damaged`. */
export function readStoredUser(
  userId: string,
  json: string,
  damaged: Damage[],
): Record<string, unknown> | null {
  return read<Record<string, unknown>>('user', userId, json, userForm, damaged)
}

/** The message of a journal record; `place` (`<chat key> <record id>`) for `damaged`. */
export function readStoredMessage(place: string, json: string, damaged: Damage[]): Message | null {
  return read<Message>('record', place, json, messageForm, damaged)
}

/** An outbox entry that is kept as one JSON text; `place` for `damaged`. */
export function readStoredOutboxEntry(place: string, json: string, damaged: Damage[]): OutboxEntry | null {
  return read<OutboxEntry>('outbox', place, json, outboxForm, damaged)
}

/** An outbox entry that is kept in parts, so that it can be settled where it is. */
export interface StoredSend {
  key: string
  hash: string
  /** JSON text. */
  content: string
  status: string
  /** JSON text; null: not sent. */
  sent: string | null
  error: string | null
}

/** @param place for `damaged`: `<chat key> <send key>`. */
export function readStoredSend(place: string, send: StoredSend, damaged: Damage[]): OutboxEntry | null {
  const content = read<OutboxEntry['content']>('outbox', place, send.content, contentForm, damaged)
  if (!content) return null
  const status = sendStatus.safeParse(send.status)
  if (!status.success) {
    damaged.push({ what: 'outbox', key: place, error: `unknown status "${send.status}"` })
    return null
  }
  const entry: OutboxEntry = { v: 1, key: send.key, hash: send.hash, content, status: status.data }
  if (send.sent !== null) {
    const sent = read<NonNullable<OutboxEntry['sent']>>('outbox', place, send.sent, sentForm, damaged)
    if (!sent) return null
    entry.sent = sent
  }
  if (send.error !== null) entry.error = send.error
  return entry
}

/** A message's JSON without the transport's own object. */
export function recordJson(message: Message): string {
  const { raw: _raw, ...kept } = message
  return JSON.stringify(kept)
}
