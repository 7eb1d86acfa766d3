/**
 * What a write changes in a chat's document, as the stages of one update (I5, I11). Within a stage every expression
 * sees the document as it was before that stage.
 */
import {
  ConfigError,
  keptRecordOf,
  type CommitResult,
  type ConversationMarker,
  type Effects,
  type FlowCheckpoint,
  type OutboxEntry,
} from '@botmesh/core'
import {
  NOW,
  after,
  among,
  each,
  either,
  isOver,
  listOf,
  lit,
  newest,
  not,
  only,
  type Expression,
} from './expressions.js'
import { escapeName } from './names.js'

export type Fields = Record<string, Expression>
export interface Stage {
  $set: Fields
}

/** How long a receipt answers a resent commit: far more than two leases. */
const RECEIPT_MS = 10 * 60_000
/** Of one chat, whatever their age. Only the latest commits of a chat are ever resent. */
const MOST_RECEIPTS = 200
const MOST_IDS = 500

/** In every write. Documents that something else made have no fence yet. */
export function written(fence?: number): Fields {
  return { at: NOW, fence: fence === undefined ? { $ifNull: ['$fence', 0] } : lit(fence) }
}

/** @throws ConfigError if it is marked ephemeral without saying for how long. */
export function checkpointFields(checkpoint: FlowCheckpoint, wakeInMs?: number | null): Fields {
  const ttlMs = ttlOf(checkpoint)
  return {
    checkpoint: lit(JSON.stringify(checkpoint)),
    revision: lit(escapeName(checkpoint.revision)),
    until: ttlMs === undefined ? null : after(ttlMs),
    refs: lit(recordsOf(checkpoint)),
    // An appointment belongs to the checkpoint as written: whatever writes it ends the one before.
    wakeAt: typeof wakeInMs === 'number' ? after(wakeInMs) : null,
    namedAt: 0,
  }
}

const REVISION: Expression = { $ifNull: ['$revision', null] }

/** The tombstone's revision is new, so that no write in flight that knew the old one gets through (I11). */
const TOMBSTONE: Expression = either(
  { $or: [{ $eq: [REVISION, null] }, { $eq: [{ $substrCP: [REVISION, 0, 1] }, '-'] }] },
  REVISION,
  { $concat: ['-', '$revision'] },
)

export const NO_CHECKPOINT: Fields = {
  checkpoint: null,
  until: null,
  refs: lit([]),
  wakeAt: null,
  revision: TOMBSTONE,
}

export function markerFields(marker: ConversationMarker | null): Fields {
  if (!marker) return { marker: null, markerUntil: null }
  const { ttlMs } = marker
  return { marker: lit(JSON.stringify(marker)), markerUntil: ttlMs === undefined ? null : after(ttlMs) }
}

/** `dueAt` and `deadAt` of what the lists are by now. */
export const HEADS: Stage = {
  $set: { dueAt: firstOf('pending', 'dueAt'), deadAt: firstOf('dead', 'at') },
}

/** The list with `ids` as its newest members, without what has had its time. */
export function withIds(ids: readonly string[], dedupeMs: number): Expression {
  const others = only(listOf('ids'), { $and: [{ $gt: ['$$one.until', NOW] }, not(among('i', ids))] })
  return newest(
    { $concatArrays: [others, ids.map((i) => ({ i: lit(i), until: after(dedupeMs) }))] },
    MOST_IDS,
  )
}

/** Everything that one commit changes, and its receipt. */
export function commitStages(
  fence: number,
  commitId: string,
  effects: Effects,
  { dedupeMs }: { dedupeMs: number },
): Stage[] {
  const { checkpoint, wakeInMs, marker, inboundId, ack = [], outbox = [], forget = [] } = effects
  const ids = [...new Set([...ack, ...(inboundId === undefined ? [] : [inboundId])])].map(escapeName)
  const fields: Fields = {
    ...written(fence),
    ...(checkpoint ? checkpointFields(checkpoint, wakeInMs) : {}),
    ...(checkpoint === null ? NO_CHECKPOINT : {}),
    ...(checkpoint === undefined && wakeInMs === null ? { wakeAt: null } : {}),
    ...(marker === undefined ? {} : markerFields(marker)),
    ...(ids.length === 0 ? {} : { ids: withIds(ids, dedupeMs) }),
  }
  if (ack.length > 0) fields['pending'] = only(listOf('pending'), not(among('i', ack.map(escapeName))))
  const stages: Stage[] = [{ $set: fields }, HEADS, ...outbox.map(sendStage)]
  if (forget.length > 0) {
    stages.push({ $set: { outbox: only(listOf('outbox'), not(among('k', forget.map(escapeName)))) } })
  }
  return [...stages, receiptStage(commitId)]
}

/** One that is known to be sent is not undone by an older view of the same content. */
function sendStage(entry: OutboxEntry): Stage {
  const k = escapeName(entry.key)
  const hash = escapeName(entry.hash)
  const document = {
    ...{ k, hash, content: JSON.stringify(entry.content), status: entry.status },
    sent: entry.sent ? JSON.stringify(entry.sent) : null,
    error: entry.error === undefined ? null : JSON.stringify(entry.error),
  }
  const known = only(listOf('outbox'), {
    $and: [
      { $eq: ['$$one.k', lit(k)] },
      { $eq: ['$$one.hash', lit(hash)] },
      { $eq: ['$$one.status', 'sent'] },
    ],
  })
  const others = only(listOf('outbox'), { $ne: ['$$one.k', lit(k)] })
  const replaced = { $concatArrays: [others, [lit(document)]] }
  return { $set: { outbox: either({ $gt: [{ $size: known }, 0] }, listOf('outbox'), replaced) } }
}

function receiptStage(commitId: string): Stage {
  const revision = either(isOver('until'), null, REVISION)
  const more = { $gt: [{ $ifNull: ['$dueAt', -1] }, -1] }
  const receipt = { c: lit(escapeName(commitId)), until: after(RECEIPT_MS), revision, more }
  const others = only(listOf('receipts'), { $gt: ['$$one.until', NOW] })
  return { $set: { receipts: newest({ $concatArrays: [others, [receipt]] }, MOST_RECEIPTS) } }
}

/** The receipt as an answer. */
export function answerOf(
  receipt: { revision: string | null; more: boolean },
  unescape: (name: string) => string,
): CommitResult {
  const { revision, more } = receipt
  return { outcome: 'committed', revision: revision === null ? null : unescape(revision), more }
}

/** Adds a record as the newest, unless its id is known; `told` says which of the two. */
export function recordStages(id: string, call: string): Stage[] {
  const has = (field: string, condition: Expression): Expression => ({
    $gt: [{ $size: only(listOf(field), condition) }, 0],
  })
  const same: Expression = { $eq: ['$$one.i', lit(id)] }
  const known = {
    $or: [
      has('ids', { $and: [same, { $gt: ['$$one.until', NOW] }] }),
      has('pending', same),
      has('dead', same),
    ],
  }
  const seq = { $add: [{ $ifNull: ['$last', 0] }, 1] }
  const head = { i: lit(id), seq, attempts: lit(0), error: null, dueAt: NOW }
  return [
    { $set: { ...written(), told: either(known, null, lit(call)) } },
    {
      $set: {
        last: either({ $eq: ['$told', lit(call)] }, seq, { $ifNull: ['$last', 0] }),
        pending: either(
          { $eq: ['$told', lit(call)] },
          { $concatArrays: [listOf('pending'), [head]] },
          listOf('pending'),
        ),
        // Chats that a sweeper named long ago come first: this one has just become one to look at.
        namedAt: either({ $gt: [{ $size: listOf('pending') }, 0] }, { $ifNull: ['$namedAt', 0] }, 0),
      },
    },
    HEADS,
  ]
}

/** A failed attempt: back-off, or, with null, to the dead letters. */
export function failStages(
  id: string,
  fence: number | undefined,
  error: string,
  retryMs: number | null,
): Stage[] {
  const same: Expression = { $eq: ['$$one.i', lit(id)] }
  const more = { attempts: { $add: ['$$one.attempts', 1] }, error: lit(JSON.stringify(error)) }
  if (retryMs !== null) {
    const again = { $mergeObjects: ['$$one', { ...more, dueAt: after(retryMs) }] }
    const pending = each(listOf('pending'), either(same, again, '$$one'))
    return [{ $set: { ...written(fence), pending } }, HEADS]
  }
  const letter = { i: '$$one.i', seq: '$$one.seq', ...more, at: NOW }
  const dead = { $concatArrays: [listOf('dead'), each(only(listOf('pending'), same), letter)] }
  return [{ $set: { ...written(fence), pending: only(listOf('pending'), not(same)), dead } }, HEADS]
}

/** A dead letter back to where it was in the line, with no attempts counted. */
export function retryStages(id: string): Stage[] {
  const same: Expression = { $eq: ['$$one.i', lit(id)] }
  const back = each(only(listOf('dead'), same), {
    ...{ i: '$$one.i', seq: '$$one.seq', attempts: lit(0), error: null, dueAt: NOW },
  })
  return [
    { $set: { ...written(), told: null, back, dead: only(listOf('dead'), not(same)) } },
    {
      $set: {
        pending: {
          $concatArrays: [
            only(listOf('pending'), { $lt: ['$$one.seq', { $min: '$back.seq' }] }),
            '$back',
            only(listOf('pending'), { $gt: ['$$one.seq', { $min: '$back.seq' }] }),
          ],
        },
        namedAt: 0,
      },
    },
    { $set: { back: '$$REMOVE' } },
    HEADS,
  ]
}

/** A dead letter that nobody wants: its id stays known. */
export function discardStages(id: string, dedupeMs: number): Stage[] {
  const dead = only(listOf('dead'), { $ne: ['$$one.i', lit(id)] })
  return [{ $set: { ...written(), dead, ids: withIds([id], dedupeMs) } }, HEADS]
}

function firstOf(list: string, field: string): Expression {
  return { $ifNull: [{ $arrayElemAt: [{ $ifNull: [`$${list}.${field}`, []] }, 0] }, null] }
}

/** Records whose messages a checkpoint still needs (H7). */
function recordsOf(checkpoint: FlowCheckpoint): string[] {
  const record = keptRecordOf(checkpoint)
  return record === null ? [] : [escapeName(record)]
}

function ttlOf(checkpoint: FlowCheckpoint): number | undefined {
  if (!checkpoint.ephemeral) return undefined
  if (checkpoint.ttlMs !== undefined && checkpoint.ttlMs > 0) return checkpoint.ttlMs
  throw new ConfigError('An ephemeral checkpoint needs a positive ttlMs.', {
    option: 'ttlMs',
    value: checkpoint.ttlMs,
  })
}
