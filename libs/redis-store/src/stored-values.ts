/**
 * Values as they come back from Redis, checked: what cannot be read is reported as damage, never thrown in a loop.
 * Messages and states are checked for their outer form only: they are ours, and the inside is the application's.
 */
import { z } from 'zod'
import type { ChatState, ConversationMarker, FlowCheckpoint, JournalRecord, OutboxEntry } from '@botmesh/core'
import { unescapeName } from './keys.js'

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

export type Damage = NonNullable<ChatState['damaged']>[number]

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
    damaged.push({ what, key, error: text.slice(0, 500) })
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

export function readCheckpoint(key: string, json: string, damaged: Damage[]): FlowCheckpoint | null {
  try {
    const value = JSON.parse(json) as Partial<FlowCheckpoint> | null
    if (looksLikeCheckpoint(value)) return value
  } catch {
    // Worded below.
  }
  return read<FlowCheckpoint>('checkpoint', key, json, checkpointForm, damaged)
}

export function readMarker(key: string, json: string, damaged: Damage[]): ConversationMarker | null {
  return read<ConversationMarker>('marker', key, json, markerForm, damaged)
}

export function readUser(userId: string, json: string, damaged: Damage[]): Record<string, unknown> | null {
  return read<Record<string, unknown>>('user', userId, json, userForm, damaged)
}

/** An outbox value: '<status> <hash> <json>'. */
export function readOutboxEntry(key: string, value: string, damaged: Damage[]): OutboxEntry | null {
  return read<OutboxEntry>('outbox', key, value.slice(value.indexOf('{')), outboxForm, damaged)
}

export function writeOutboxEntry(entry: OutboxEntry): string {
  return `${entry.status} ${outboxHash(entry)} ${JSON.stringify(entry)}`
}

/** The content's hash without spaces, as scripts compare it. */
export function outboxHash(entry: OutboxEntry): string {
  return encodeURIComponent(entry.hash)
}

/** A journal record from its four values: id, '<seq> <json>', '<attempts> <ms of back-off left>', error. */
export function readRecord(
  key: string,
  [id, record, attempts, error]: readonly (string | null)[],
  damaged: Damage[],
): JournalRecord | null {
  const gap = record?.indexOf(' ') ?? -1
  if (!id || !record || gap < 1) {
    damaged.push({ what: 'record', key: `${key} ${id ?? ''}`, error: 'its content is missing' })
    return null
  }
  const message = read<JournalRecord['message']>(
    'record',
    `${key} ${id}`,
    record.slice(gap + 1),
    messageForm,
    damaged,
  )
  if (!message) return null
  const [count = '0', left = '0'] = (attempts ?? '').split(' ')
  const waitMs = Number(left)
  return {
    v: 1,
    id: unescapeName(id),
    seq: Number(record.slice(0, gap)),
    message,
    attempts: Number(count) || 0,
    ...(error ? { lastError: unescapeName(error) } : {}),
    ...(waitMs > 0 ? { waitMs } : {}),
  }
}
