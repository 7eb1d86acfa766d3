/**
 * Removes messages of the journal that have had their time. Nothing runs while the store is idle: a write now and then
 * starts it, in the background and in portions. Locks and channels are removed by the server's own TTL indexes.
 */
import { BackgroundSweep } from '@botmesh/core'
import type { ChatDocument, Collections } from './documents.js'
import { NOW } from './expressions.js'
import { IDEMPOTENT, type MongoLink } from './mongo-link.js'

const PORTION = 1000

export class Sweep extends BackgroundSweep {
  constructor(
    private readonly link: MongoLink,
    private readonly limits: { dedupeMs: number },
  ) {
    super(link.options, 'old messages')
  }

  protected sweep(): Promise<void> {
    return this.portions(() =>
      this.link.run('sweep', '', IDEMPOTENT, (collections) => this.sweepOn(collections)),
    )
  }

  /** A portion of them; true if there may be more. */
  private async sweepOn(collections: Collections): Promise<boolean> {
    const { bodies } = collections
    const old = { $expr: { $lte: ['$at', { $subtract: [NOW, this.limits.dedupeMs] }] } }
    const found = await bodies
      .find(old, { projection: { chat: 1, id: 1 } })
      .sort({ at: 1 })
      .limit(PORTION)
      .toArray()
    if (found.length === 0) return false
    const needed = await this.needed(collections, [...new Set(found.map(({ chat }) => chat))])
    const kept = found.filter(({ chat, id }) => needed.get(chat)?.has(id)).map(({ _id }) => _id)
    const gone = found.filter(({ chat, id }) => !needed.get(chat)?.has(id)).map(({ _id }) => _id)
    // Not those that were recorded anew meanwhile: these are not old any more.
    await bodies.deleteMany({ _id: { $in: gone }, ...old })
    await bodies.updateMany({ _id: { $in: kept } }, [{ $set: { at: NOW } }])
    return true
  }

  /** Records of these chats that wait, are dead or are pointed to by a kept answer (H7). */
  private async needed({ chats }: Collections, names: string[]): Promise<Map<string, Set<string>>> {
    const projection = { 'pending.i': 1, 'dead.i': 1, refs: 1 }
    const documents = await chats.find({ _id: { $in: names } }, { projection }).toArray()
    const idsOf = ({ pending = [], dead = [], refs = [] }: ChatDocument) =>
      new Set([...[...pending, ...dead].map(({ i }) => i), ...refs])
    return new Map(documents.map((document) => [document._id, idsOf(document)]))
  }
}
