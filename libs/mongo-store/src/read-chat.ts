/** Documents as they come back from the server, read with the checks that all stores share. */
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
import type { BodyDocument, ChatDocument, SendDocument } from './documents.js'
import { unescapeName } from './names.js'

/** True while something with this expiry is there. */
export function alive(until: number | null | undefined, now: number): boolean {
  return until === null || until === undefined || until > now
}

/** Checkpoint, marker, revision and appointment; damage goes to `damaged`. */
export function readChat(
  key: string,
  document: ChatDocument | null,
  now: number,
  damaged: Damage[],
): ChatState {
  if (!document) return { checkpoint: null, marker: null, revision: null }
  const { checkpoint: json = null, marker: markerJson = null, until, wakeAt = null } = document
  const expired = json !== null && !alive(until, now)
  const checkpoint = json === null || expired ? null : readStoredCheckpoint(key, textOf(json), damaged)
  const marker =
    markerJson === null || !alive(document.markerUntil, now)
      ? null
      : readStoredMarker(key, textOf(markerJson), damaged)
  const revision = expired || !document.revision ? null : unescapeName(document.revision)
  const state: ChatState = { checkpoint, marker, revision }
  if (wakeAt !== null && json !== null && !expired) state.dueInMs = wakeAt - now
  return state
}

/** Somebody may have put anything there. */
function textOf(json: unknown): string {
  return typeof json === 'string' ? json : `not text: ${typeof json}`
}

/** What the chat knows of a record, whether it waits, is dead or is acknowledged. */
export interface RecordHead {
  i: string
  seq?: number
  attempts?: number
  error?: string | null
  /** Only while it waits. */
  dueAt?: number
}

export function readRecord(
  key: string,
  head: RecordHead,
  body: Pick<BodyDocument, 'message'> | null,
  now: number,
  damaged: Damage[],
): JournalRecord | null {
  const id = unescapeName(head.i)
  const place = `${key} ${id}`
  if (!body) {
    damaged.push({ what: 'record', key: place, error: 'its message is missing' })
    return null
  }
  const message = readStoredMessage(place, textOf(body.message), damaged)
  if (!message) return null
  const { seq = 0, attempts = 0, error, dueAt = 0 } = head
  const record: JournalRecord = { v: 1, id, seq, message, attempts }
  if (typeof error === 'string') record.lastError = String(JSON.parse(error))
  if (dueAt > now) record.waitMs = dueAt - now
  return record
}

export function readSend(chatKey: string, send: SendDocument, damaged: Damage[]): OutboxEntry | null {
  const key = unescapeName(send.k)
  const { status, sent } = send
  const error = send.error === null ? null : String(JSON.parse(send.error))
  const parts = { key, hash: unescapeName(send.hash), content: textOf(send.content), status, sent, error }
  return readStoredSend(`${chatKey} ${key}`, parts, damaged)
}
