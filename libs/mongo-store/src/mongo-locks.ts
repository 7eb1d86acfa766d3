/** Fenced locks (S2): a document a name, which stays for a while after its end, so that its fence goes on from there. */
import {
  CheckedLocks,
  StoreError,
  type CheckedLocksOptions,
  type FencedLock,
  type LockStore,
} from '@botmesh/core'
import type { LockDocument } from './documents.js'
import { NOW, after, either, lit, type Expression } from './expressions.js'
import { IDEMPOTENT, ONCE, type MongoLink } from './mongo-link.js'
import { escapeName } from './names.js'
import { isDuplicateKey } from './verdict.js'

/** A lease backend for the scheduler: fenced leases by name, apart from the application's locks. */
export type MongoLeases = Pick<LockStore, 'acquireLockFenced' | 'renewLock' | 'releaseLock'>

/** A lock's document outlives its end, so that its fence grows also where the clock steps back. */
const KEPT_MS = 7 * 86_400_000
/** Fences begin at the server's clock in microseconds. */
const FENCE: Expression = {
  $max: [{ $add: [{ $ifNull: ['$fence', 0] }, 1] }, { $multiply: [NOW, 1000] }],
}

export class MongoLocks extends CheckedLocks {
  constructor(
    private readonly link: MongoLink,
    options: CheckedLocksOptions,
  ) {
    super(options)
  }

  protected async take(key: string, token: string, ttlMs: number): Promise<FencedLock | null> {
    const free = { $lte: [{ $ifNull: ['$until', 0] }, NOW] }
    const when = (yes: Expression, field: string): Expression => either(free, yes, `$${field}`)
    const taken = {
      token: when(lit(token), 'token'),
      fence: when(FENCE, 'fence'),
      until: when(after(ttlMs), 'until'),
      expireAt: when(keptAfter(ttlMs), 'expireAt'),
    }
    // Its own token tells a copy of the call that the first one has landed.
    return this.link.run('acquireLockFenced', key, IDEMPOTENT, async ({ locks }) => {
      const options = { upsert: true, returnDocument: 'after' } as const
      const take = () => locks.findOneAndUpdate({ _id: this.nameOf(key) }, [{ $set: taken }], options)
      const document = await take().catch((error: unknown) => {
        // Somebody made the document just now.
        if (isDuplicateKey(error)) return take()
        throw error
      })
      return document?.token === token ? heldBy(document) : null
    })
  }

  protected async prolong(key: string, token: string, ttlMs: number): Promise<boolean> {
    return this.link.run('renewLock', key, IDEMPOTENT, async ({ locks }) => {
      const set = { until: after(ttlMs), expireAt: keptAfter(ttlMs) }
      return (await locks.updateOne(this.mine(key, token), [{ $set: set }])).matchedCount > 0
    })
  }

  protected async free(key: string, token: string): Promise<boolean> {
    return this.link.run('releaseLock', key, ONCE, async ({ locks }) => {
      const set = { until: 0, expireAt: keptAfter(0) }
      return (await locks.updateOne(this.mine(key, token), [{ $set: set }])).matchedCount > 0
    })
  }

  private mine(key: string, token: string) {
    return { _id: this.nameOf(key), token, $expr: { $gt: ['$until', NOW] } }
  }

  private nameOf(key: string): string {
    return escapeName(`${this.kind}:${key}`)
  }
}

function heldBy({ _id, token, fence }: LockDocument): FencedLock {
  if (Number.isSafeInteger(fence)) return { token, fence }
  throw new StoreError(`The fence of "${_id}" is no safe integer: is the server's clock right?`, {
    store: 'mongo',
    operation: 'acquireLockFenced',
  })
}

/** A date, for the server's TTL index. */
function keptAfter(ttlMs: number): Expression {
  return { $add: ['$$NOW', Math.ceil(ttlMs) + KEPT_MS] }
}
