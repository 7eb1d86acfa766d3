/**
 * Values as they come back from the database, checked: what cannot be read is reported as damage, never thrown in a
 * loop. Messages and states are checked for their outer form only: the inside is the application's.
 */
import { z } from 'zod'
import type {
  ChatState,
  ConversationMarker,
  FlowCheckpoint,
  JournalRecord,
  Message,
  OutboxEntry,
} from '@botmesh/core'
import { unescapeName } from './names.js'
import { PENDING, type ChatColumns, type Int, type JournalColumns, type OutboxTable } from './tables.js'

/** A stored value that cannot be read: see `ChatState.damaged`. */
export interface Damage {
  what: 'checkpoint' | 'marker' | 'record' | 'outbox' | 'user'
  key: string
  error: string
}

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
const userForm = z.record(z.string(), z.unknown())
const contentForm = z.record(z.string(), z.unknown()).or(z.string())
const sentForm = z.looseObject({ id: z.string() })
const SEND_STATUS = z.enum(['intended', 'sent', 'failed', 'uncertain'])

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

/** True while something with this expiry is there. */
export function alive(until: Int | null, now: number): boolean {
  return until === null || Number(until) > now
}

type StateColumns = Pick<
  ChatColumns,
  'revision' | 'checkpoint' | 'checkpoint_until' | 'wake_at' | 'marker' | 'marker_until'
>

/** Checkpoint, marker and revision of a row; damage goes to `damaged`. */
export function readChat(
  key: string,
  row: StateColumns | undefined,
  now: number,
  damaged: Damage[],
): ChatState {
  if (!row) return { checkpoint: null, marker: null, revision: null }
  const expired = row.checkpoint !== null && !alive(row.checkpoint_until, now)
  const checkpoint =
    row.checkpoint === null || expired
      ? null
      : read<FlowCheckpoint>('checkpoint', key, row.checkpoint, checkpointForm, damaged)
  const marker =
    row.marker === null || !alive(row.marker_until, now)
      ? null
      : read<ConversationMarker>('marker', key, row.marker, markerForm, damaged)
  const revision = expired || row.revision === null ? null : unescapeName(row.revision)
  const state: ChatState = { checkpoint, marker, revision }
  if (row.wake_at !== null && row.checkpoint !== null && !expired) state.dueInMs = Number(row.wake_at) - now
  return state
}

export function readUser(userId: string, json: string, damaged: Damage[]): Record<string, unknown> | null {
  return read<Record<string, unknown>>('user', userId, json, userForm, damaged)
}

export function readRecord(row: JournalColumns, now: number, damaged: Damage[]): JournalRecord | null {
  const id = unescapeName(row.id)
  const message = read<Message>(
    'record',
    `${unescapeName(row.chat)} ${id}`,
    row.message,
    messageForm,
    damaged,
  )
  if (!message) return null
  const record: JournalRecord = { v: 1, id, seq: Number(row.seq), message, attempts: Number(row.attempts) }
  if (row.last_error !== null) record.lastError = String(JSON.parse(row.last_error))
  const waitMs = Number(row.due_at) - now
  if (waitMs > 0 && Number(row.status) === PENDING) record.waitMs = waitMs
  return record
}

export function readOutboxEntry(row: OutboxTable, damaged: Damage[]): OutboxEntry | null {
  const key = unescapeName(row.name)
  const place = `${unescapeName(row.chat)} ${key}`
  const content = read<OutboxEntry['content']>('outbox', place, row.content, contentForm, damaged)
  const status = SEND_STATUS.safeParse(row.status)
  if (!content || !status.success) {
    if (content) damaged.push({ what: 'outbox', key: place, error: `unknown status "${row.status}"` })
    return null
  }
  const entry: OutboxEntry = { v: 1, key, hash: unescapeName(row.hash), content, status: status.data }
  if (row.sent !== null) {
    const sent = read<NonNullable<OutboxEntry['sent']>>('outbox', place, row.sent, sentForm, damaged)
    if (!sent) return null
    entry.sent = sent
  }
  if (row.error !== null) entry.error = String(JSON.parse(row.error))
  return entry
}

/** A message's JSON without the transport's own object. */
export function recordJson(message: Message): string {
  const { raw: _raw, ...kept } = message
  return JSON.stringify(kept)
}
