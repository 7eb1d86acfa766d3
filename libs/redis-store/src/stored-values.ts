/** Values in the form in which scripts hand them out, read with the checks that all stores share. */
import {
  readStoredMessage,
  readStoredOutboxEntry,
  type Damage,
  type JournalRecord,
  type OutboxEntry,
} from '@botmesh/core'
import { unescapeName } from './keys.js'

export {
  readStoredCheckpoint as readCheckpoint,
  readStoredMarker as readMarker,
  readStoredUser as readUser,
  type Damage,
} from '@botmesh/core'

/** An outbox value: '<status> <hash> <json>'. `place` (`<chat key> <send key>`) for `damaged`. */
export function readOutboxEntry(place: string, value: string, damaged: Damage[]): OutboxEntry | null {
  return readStoredOutboxEntry(place, value.slice(value.indexOf('{')), damaged)
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
  const message = readStoredMessage(`${key} ${id}`, record.slice(gap + 1), damaged)
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
