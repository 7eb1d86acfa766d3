/** Rows as they come back from the database, read with the checks that all stores share. */
import {
  readStoredCheckpoint,
  readStoredMarker,
  readStoredMessage,
  readStoredSend,
  type ChatState,
  type Damage,
  type JournalRecord,
  type OutboxEntry,
} from '@botmesh/core'
import { unescapeName } from './names.js'
import { PENDING, type ChatColumns, type Int, type JournalColumns, type OutboxTable } from './tables.js'

export { readStoredUser as readUser, recordJson, type Damage } from '@botmesh/core'

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
    row.checkpoint === null || expired ? null : readStoredCheckpoint(key, row.checkpoint, damaged)
  const marker =
    row.marker === null || !alive(row.marker_until, now) ? null : readStoredMarker(key, row.marker, damaged)
  const revision = expired || row.revision === null ? null : unescapeName(row.revision)
  const state: ChatState = { checkpoint, marker, revision }
  if (row.wake_at !== null && row.checkpoint !== null && !expired) state.dueInMs = Number(row.wake_at) - now
  return state
}

export function readRecord(
  row: Omit<JournalColumns, 'named_at' | 'ended_at'>,
  now: number,
  damaged: Damage[],
): JournalRecord | null {
  const id = unescapeName(row.id)
  const message = readStoredMessage(`${unescapeName(row.chat)} ${id}`, row.message, damaged)
  if (!message) return null
  const record: JournalRecord = { v: 1, id, seq: Number(row.seq), message, attempts: Number(row.attempts) }
  if (row.last_error !== null) record.lastError = String(JSON.parse(row.last_error))
  const waitMs = Number(row.due_at) - now
  if (waitMs > 0 && Number(row.status) === PENDING) record.waitMs = waitMs
  return record
}

export function readOutboxEntry(row: OutboxTable, damaged: Damage[]): OutboxEntry | null {
  const key = unescapeName(row.name)
  const { content, status, sent } = row
  const error = row.error === null ? null : String(JSON.parse(row.error))
  const send = { key, hash: unescapeName(row.hash), content, status, sent, error }
  return readStoredSend(`${unescapeName(row.chat)} ${key}`, send, damaged)
}
