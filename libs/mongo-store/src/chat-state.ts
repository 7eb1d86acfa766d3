/**
 * `StateStore` and `CheckpointStore`: each call is one atomic update of the chat's document. The opening read raises
 * the fence in the same statement; every later write compares it; a commit leaves a receipt (Z4, K2, I5, I9).
 */
import type { Filter, UpdateFilter } from 'mongodb'
import type {
  Arrival,
  ChatState,
  CommitResult,
  Damage,
  Effects,
  FlowCheckpoint,
  ReadOptions,
} from '@botmesh/core'
import {
  NO_CHECKPOINT,
  answerOf,
  checkpointFields,
  commitStages,
  written,
  type Fields,
} from './chat-writes.js'
import { ensure, upsert } from './chat-documents.js'
import { setAside, setEntriesAside } from './damage.js'
import { collectionName, type ChatDocument, type Collections } from './documents.js'
import { NOW, isOver, lit } from './expressions.js'
import { IDEMPOTENT, type MongoLink } from './mongo-link.js'
import type { MongoJournal } from './mongo-journal.js'
import { escapeName, unescapeName } from './names.js'
import { readChat, readSend } from './read-chat.js'
import { isDuplicateKey } from './verdict.js'

type Condition = Filter<ChatDocument>

const STATE = { fence: 1, at: 1, revision: 1, checkpoint: 1, until: 1, wakeAt: 1, marker: 1, markerUntil: 1 }

export class MongoChatState {
  constructor(
    private readonly link: MongoLink,
    private readonly journal: MongoJournal,
    private readonly limits: { dedupeMs: number },
  ) {}

  getCheckpoint(key: string): Promise<FlowCheckpoint | null> {
    return this.link.run('getCheckpoint', key, IDEMPOTENT, async (collections) => {
      const [document] = await collections.chats
        .aggregate<ChatDocument & { now: number }>([
          { $match: { _id: escapeName(key) } },
          { $project: { checkpoint: 1, until: 1, revision: 1, now: NOW } },
        ])
        .toArray()
      if (!document) return null
      const damaged: Damage[] = []
      const { checkpoint } = readChat(key, document, document.now, damaged)
      const [unreadable] = damaged
      if (unreadable && (await setAside(collections, key, 'checkpoint'))) {
        this.link.options.logger.error({ ...unreadable }, 'a checkpoint cannot be read and was moved aside')
      }
      return checkpoint
    })
  }

  setAside(key: string, what: 'checkpoint' | 'marker'): Promise<string> {
    return this.link.run('setAside', key, IDEMPOTENT, async (collections) => {
      const place = collectionName(this.link.options.prefix, 'damaged')
      return (await setAside(collections, key, what)) ? `collection ${place}` : 'nothing: it can be read'
    })
  }

  async setCheckpoint(key: string, checkpoint: FlowCheckpoint): Promise<void> {
    const stages = [{ $set: { ...written(), ...checkpointFields(checkpoint) } }]
    await this.link.run('setCheckpoint', key, IDEMPOTENT, (collections) =>
      upsert(collections, escapeName(key), stages, { _id: 1 }),
    )
  }

  async clearCheckpoint(key: string): Promise<void> {
    const stages = [{ $set: { ...written(), ...NO_CHECKPOINT } }]
    await this.link.run('clearCheckpoint', key, IDEMPOTENT, ({ chats }) =>
      chats.updateOne({ _id: escapeName(key) }, stages),
    )
  }

  setCheckpointIf(
    key: string,
    checkpoint: FlowCheckpoint,
    expected: string | null,
    fence: number,
  ): Promise<boolean> {
    // A copy of a write that has landed meets its own revision.
    const repeated = escapeName(checkpoint.revision)
    return this.writeIf('setCheckpointIf', key, checkpointFields(checkpoint), { expected, fence, repeated })
  }

  clearCheckpointIf(key: string, expected: string | null, fence: number): Promise<boolean> {
    const repeated = expected === null ? null : `-${escapeName(expected)}`
    return this.writeIf('clearCheckpointIf', key, NO_CHECKPOINT, { expected, fence, repeated })
  }

  private writeIf(
    operation: string,
    key: string,
    fields: Fields,
    { expected, fence, repeated }: { expected: string | null; fence: number; repeated: string | null },
  ): Promise<boolean> {
    const _id = escapeName(key)
    const allowed: Condition[] = [expects(expected)]
    if (repeated !== null) allowed.push({ revision: repeated })
    const filter: Condition = { _id, fence: { $lte: fence }, $or: allowed }
    const stages = [{ $set: { ...written(fence), ...fields } }]
    return this.link.run(operation, key, IDEMPOTENT, async (collections) => {
      const write = async (): Promise<boolean> =>
        (await collections.chats.updateOne(filter, stages)).matchedCount > 0
      if (await write()) return true
      if (expected !== null) return false
      await ensure(collections, _id)
      return write()
    })
  }

  touchChat(key: string, messageId: string, timestamp: number): Promise<void> {
    return this.link.run('touchChat', key, IDEMPOTENT, async (collections) => {
      await upsert(collections, escapeName(key), [{ $set: touched(messageId, timestamp) }], { _id: 1 })
    })
  }

  arrive(key: string, { messageId, timestamp, message }: Arrival): Promise<'recorded' | 'duplicate'> {
    const touch = touched(messageId, timestamp)
    if (message) return this.journal.insert('arrive', key, message, touch)
    return this.link.run('arrive', key, IDEMPOTENT, async (collections) => {
      const ids = { $elemMatch: { i: escapeName(messageId) } }
      const document = await upsert(collections, escapeName(key), [{ $set: touch }], { at: 1, ids })
      return isKnown(document) ? 'duplicate' : 'recorded'
    })
  }

  isCommitted(key: string, inboundId: string): Promise<boolean> {
    return this.link.run('isCommitted', key, IDEMPOTENT, async ({ chats }) => {
      const i = lit(escapeName(inboundId))
      const known = { $and: [{ $eq: ['$$one.i', i] }, { $gt: ['$$one.until', NOW] }] }
      const [found] = await chats
        .aggregate<{ known: number }>([
          { $match: { _id: escapeName(key) } },
          {
            $project: {
              known: { $size: { $filter: { input: { $ifNull: ['$ids', []] }, as: 'one', cond: known } } },
            },
          },
        ])
        .toArray()
      return (found?.known ?? 0) > 0
    })
  }

  openState(key: string, fence: number, options: ReadOptions = {}): Promise<ChatState | null> {
    return this.link.run('openState', key, IDEMPOTENT, async (collections) => {
      const document = await raiseFence(collections, escapeName(key), fence, options.journal === true)
      if (!document) return null
      const damaged: Damage[] = []
      const now = document.at ?? 0
      const state = readChat(key, document, now, damaged)
      if (options.journal) {
        state.record = await this.journal.readFirst(collections, key, document, now, damaged)
        state.outbox = (document.outbox ?? []).flatMap((send) => readSend(key, send, damaged) ?? [])
      }
      if (damaged.length === 0) return state
      await setEntriesAside(collections, key, document, damaged)
      return { ...state, damaged }
    })
  }

  commitState(key: string, fence: number, commitId: string, effects: Effects): Promise<CommitResult> {
    const _id = escapeName(key)
    const c = escapeName(commitId)
    const { checkpoint, expectedRevision = null } = effects
    const stages = commitStages(fence, commitId, effects, this.limits)
    const filter: Condition = { _id, fence: { $lte: fence }, 'receipts.c': { $ne: c } }
    if (checkpoint !== undefined) filter.$and = [expects(expectedRevision)]
    const receipt = { returnDocument: 'after', projection: { receipts: { $elemMatch: { c } } } } as const
    return this.link.run('commitState', key, IDEMPOTENT, async (collections) => {
      const { chats } = collections
      const attempt = async () =>
        (await chats.findOneAndUpdate(filter, stages, receipt)) ??
        // Not allowed, or done by an earlier copy, which a mere read might not see yet: a majority confirms it first.
        (await chats.findOneAndUpdate({ _id, 'receipts.c': c }, [{ $set: written() as object }], receipt))
      let document = await attempt()
      if (!document && (checkpoint === undefined || expectedRevision === null)) {
        // Perhaps the chat had no document.
        await ensure(collections, _id)
        document = await attempt()
      }
      const [given] = document?.receipts ?? []
      return given ? answerOf(given, unescapeName) : { outcome: 'refused', why: 'superseded' }
    })
  }
}

/** Whether the revision is what a writer expects; null: none, cleared or expired. */
function expects(expected: string | null): Condition {
  if (expected !== null) return { revision: escapeName(expected) }
  return { $or: [{ checkpoint: null }, { $expr: isOver('until') }] }
}

function touched(messageId: string, timestamp: number): Fields {
  return { ...written(), lastId: lit(escapeName(messageId)), lastAt: lit(Math.round(timestamp)) }
}

function isKnown({ ids: [known] = [], at = 0 }: ChatDocument): boolean {
  return known !== undefined && known.until > at
}

/** Raises the chat's fence and reads in the same statement. @returns null if a higher one is known. */
async function raiseFence(
  { chats }: Collections,
  _id: string,
  fence: number,
  journal: boolean,
): Promise<ChatDocument | null> {
  const filter = { _id, fence: { $lte: fence } }
  const update: UpdateFilter<ChatDocument>[] = [{ $set: written(fence) as object }]
  const projection = journal ? { ...STATE, pending: { $slice: 1 }, outbox: 1 } : STATE
  const options = { returnDocument: 'after', projection } as const
  try {
    return await chats.findOneAndUpdate(filter, update, { ...options, upsert: true })
  } catch (error) {
    if (!isDuplicateKey(error)) throw error
    // It is there, with a higher fence, or it was made just now.
    return chats.findOneAndUpdate(filter, update, options)
  }
}
