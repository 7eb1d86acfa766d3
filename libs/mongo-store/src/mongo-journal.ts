/**
 * The journal: the line of a chat's records is in its document, so that arriving, failing and being acknowledged are
 * atomic with everything else there; the messages themselves lie in `bodies`, written before the line names them (D1, D3).
 */
import type { Filter } from 'mongodb'
import {
  Journal,
  type Damage,
  type DeadLetter,
  type JournalRecord,
  type Message,
  type Random,
  recordJson,
  unreadableLetter,
} from '@botmesh/core'
import { ensure, upsert } from './chat-documents.js'
import {
  discardStages,
  failStages,
  recordStages,
  retryStages,
  type Fields,
  type Stage,
} from './chat-writes.js'
import type { ChatDocument, Collections } from './documents.js'
import { NOW, isOver, lit, only, type Expression } from './expressions.js'
import { IDEMPOTENT, ONCE, type MongoLink } from './mongo-link.js'
import { escapeName, unescapeName } from './names.js'
import { readRecord, type RecordHead } from './read-chat.js'

/** Both escaped: in such a name no `~` has a slash after it, unless it ends a group. */
function bodyId(chat: string, id: string): string {
  return `${chat}~/${id}`
}

/** Chats whose key begins so, as a range that the index of ids can be asked for. */
function beginsWith(keyPrefix: string): Filter<ChatDocument> {
  const prefix = escapeName(keyPrefix)
  return prefix === '' ? {} : { _id: { $gte: prefix, $lt: `${prefix}\u{10ffff}` } }
}

export class MongoJournal extends Journal {
  constructor(
    private readonly link: MongoLink,
    private readonly random: Random,
    private readonly limits: { dedupeMs: number },
  ) {
    super()
  }

  record(key: string, message: Message): Promise<'recorded' | 'duplicate'> {
    return this.insert('record', key, message, {})
  }

  /** @param more what else is to be written into the chat's document. */
  insert(operation: string, key: string, message: Message, more: Fields): Promise<'recorded' | 'duplicate'> {
    const chat = escapeName(key)
    const id = escapeName(message.id)
    const call = this.random.uuid()
    const [first, ...stages] = recordStages(id, call)
    const all: Stage[] = [{ $set: { ...more, ...first?.$set } }, ...stages]
    const body = this.bodyStages(chat, id, recordJson(message))
    return this.link.run(operation, key, IDEMPOTENT, async (collections) => {
      await collections.bodies.updateOne({ _id: bodyId(chat, id) }, body, { upsert: true })
      const { told } = await upsert(collections, chat, all, { told: 1 })
      return told === call ? 'recorded' : 'duplicate'
    })
  }

  /** What stands there is not replaced as long as it may be needed: a duplicate may say something else. */
  private bodyStages(chat: string, id: string, json: string): Stage[] {
    const fresh = { $gt: [{ $ifNull: ['$at', 0] }, { $subtract: [NOW, this.limits.dedupeMs] }] }
    const message: Expression = { $cond: [fresh, '$message', lit(json)] }
    return [{ $set: { chat: lit(chat), id: lit(id), message, at: NOW } }]
  }

  oldest(key: string): Promise<JournalRecord | null> {
    const chat = escapeName(key)
    return this.link.run('oldest', key, IDEMPOTENT, async (collections) => {
      for (;;) {
        const [document] = await collections.chats
          .aggregate<ChatDocument & { now: number }>([
            { $match: { _id: chat } },
            { $project: { pending: { $slice: [{ $ifNull: ['$pending', []] }, 1] }, now: NOW } },
          ])
          .toArray()
        const damaged: Damage[] = []
        const record = document
          ? await this.readFirst(collections, key, document, document.now, damaged)
          : null
        const [unreadable] = damaged
        if (record || !unreadable) return record
        // It would block its chat for ever: among the dead letters somebody can look at it.
        this.link.options.logger.error({ ...unreadable }, 'a journal record cannot be read and is given up')
        const id = escapeName(unreadable.key.slice(key.length + 1))
        await collections.chats.updateOne({ _id: chat }, failStages(id, undefined, 'unreadable', null))
      }
    })
  }

  /** The first of a chat's line; null and an entry in `damaged` if it cannot be read. */
  async readFirst(
    { bodies }: Collections,
    key: string,
    { pending: [head] = [] }: ChatDocument,
    now: number,
    damaged: Damage[],
  ): Promise<JournalRecord | null> {
    if (!head) return null
    const body = await bodies.findOne({ _id: bodyId(escapeName(key), head.i) })
    return readRecord(key, head, body, now, damaged)
  }

  find(key: string, id: string): Promise<JournalRecord | null> {
    const chat = escapeName(key)
    const i = escapeName(id)
    return this.link.run('find', key, IDEMPOTENT, async ({ chats, bodies }) => {
      const body = await bodies.findOne({ _id: bodyId(chat, i) })
      if (!body) return null
      const lists = { $concatArrays: [{ $ifNull: ['$pending', []] }, { $ifNull: ['$dead', []] }] }
      const [found] = await chats
        .aggregate<{ heads: RecordHead[]; now: number }>([
          { $match: { _id: chat } },
          { $project: { heads: only(lists, { $eq: ['$$one.i', lit(i)] }), now: NOW } },
        ])
        .toArray()
      return readRecord(key, found?.heads[0] ?? { i }, body, found?.now ?? 0, [])
    })
  }

  fail(key: string, id: string, fence: number, error: string, retryMs: number | null): Promise<boolean> {
    const _id = escapeName(key)
    const stages = failStages(escapeName(id), fence, error, retryMs)
    return this.link.run('fail', key, ONCE, async (collections) => {
      await ensure(collections, _id)
      const { matchedCount } = await collections.chats.updateOne({ _id, fence: { $lte: fence } }, stages)
      return matchedCount > 0
    })
  }

  /**
   * Chats by a record or by an appointment. Those named longest ago come first, so that chats somebody works on for
   * long never hide others.
   */
  stranded(idleMs: number, limit: number, keyPrefix = ''): Promise<string[]> {
    if (limit < 1) return Promise.resolve([])
    const before = { $subtract: [NOW, Math.ceil(idleMs)] }
    const alive = { $and: [{ $ne: [{ $ifNull: ['$checkpoint', null] }, null] }, { $not: [isOver('until')] }] }
    return this.link.run('stranded', '', IDEMPOTENT, async ({ chats }) => {
      const found = await chats
        .aggregate<{ _id: string }>([
          {
            $match: {
              ...beginsWith(keyPrefix),
              $or: [
                { dueAt: { $gt: 0 }, $expr: { $lte: ['$dueAt', before] } },
                { wakeAt: { $gt: 0 }, $expr: { $and: [{ $lte: ['$wakeAt', before] }, alive] } },
              ],
            },
          },
          { $project: { namedAt: 1 } },
          { $sort: { namedAt: 1, _id: 1 } },
          { $limit: Math.floor(limit) },
        ])
        .toArray()
      const names = found.map(({ _id }) => _id)
      if (names.length > 0) await chats.updateMany({ _id: { $in: names } }, [{ $set: { namedAt: NOW } }])
      return names.map(unescapeName)
    })
  }

  deadLetters(limit: number): Promise<DeadLetter[]> {
    if (limit < 1) return Promise.resolve([])
    return this.link.run('deadLetters', '', IDEMPOTENT, async (collections) => {
      // Every one of the oldest letters is in one of as many chats whose oldest letter is old.
      const documents = await collections.chats
        .find({ deadAt: { $gt: 0 } }, { projection: { dead: 1 } })
        .sort({ deadAt: 1 })
        .limit(Math.floor(limit))
        .toArray()
      const heads = documents.flatMap(({ _id, dead = [] }) => dead.map((head) => ({ chat: _id, head })))
      heads.sort((one, other) => one.head.at - other.head.at)
      const asked = heads.slice(0, limit)
      const ids = asked.map(({ chat, head }) => bodyId(chat, head.i))
      const bodies = await collections.bodies.find({ _id: { $in: ids } }).toArray()
      const byId = new Map(bodies.map((body) => [body._id, body]))
      const letters: DeadLetter[] = []
      for (const [n, { chat, head }] of asked.entries()) {
        const damaged: Damage[] = []
        const key = unescapeName(chat)
        const body = byId.get(ids[n] ?? '') ?? null
        const record = readRecord(key, head, body, 0, damaged)
        if (record) letters.push({ key, record, at: head.at })
        else {
          const wrong = damaged[0]?.error ?? 'it cannot be read'
          letters.push(unreadableLetter(key, unescapeName(head.i), head.at, wrong, head))
        }
      }
      return letters
    })
  }

  retry(key: string, id: string): Promise<boolean> {
    return this.endLetter('retry', key, escapeName(id), retryStages(escapeName(id)))
  }

  discard(key: string, id: string): Promise<boolean> {
    return this.endLetter('discard', key, escapeName(id), discardStages(escapeName(id), this.limits.dedupeMs))
  }

  private endLetter(operation: string, key: string, id: string, stages: Stage[]): Promise<boolean> {
    return this.link.run(operation, key, ONCE, async ({ chats }) => {
      const { matchedCount } = await chats.updateOne({ _id: escapeName(key), 'dead.i': id }, stages)
      return matchedCount > 0
    })
  }
}
