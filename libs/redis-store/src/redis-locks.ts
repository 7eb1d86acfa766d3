/** Fenced locks in Redis (S2): see `scripts/lock.lua`. What is asked for in one tick goes in one call. */
import { CheckedLocks, type CheckedLocksOptions, type FencedLock, type LockStore } from '@botmesh/core'
import { escapeName } from './keys.js'
import type { StoreCalls } from './store-calls.js'

/** A lease backend for the scheduler: fenced leases by name, apart from the application's locks. */
export type RedisLeases = Pick<LockStore, 'acquireLockFenced' | 'renewLock' | 'releaseLock'>

/** The store's calls for each key: of the shard that it belongs to. */
interface CallsByKey {
  of(key: string): StoreCalls
}

export class RedisLocks extends CheckedLocks {
  private readonly batches = new Map<StoreCalls, LockBatch>()

  constructor(
    private readonly calls: CallsByKey,
    options: CheckedLocksOptions,
  ) {
    super(options)
  }

  protected take(key: string, token: string, ttlMs: number): Promise<FencedLock | null> {
    return this.run('acquire', key, token, ttlMs).then((fence) =>
      typeof fence === 'string' ? { token, fence: Number(fence) } : null,
    )
  }

  protected prolong(key: string, token: string, ttlMs: number): Promise<boolean> {
    return this.run('renew', key, token, ttlMs).then(isOne)
  }

  protected free(key: string, token: string): Promise<boolean> {
    return this.run('release', key, token, 1).then(isOne)
  }

  private run(what: string, key: string, token: string, ttlMs: number): Promise<unknown> {
    const calls = this.calls.of(key)
    let batch = this.batches.get(calls)
    if (!batch) {
      batch = new LockBatch(calls)
      this.batches.set(calls, batch)
    }
    const name = `${calls.options.keys.base}lock:${this.kind}:${escapeName(key)}`
    return batch.add(what, name, token, String(Math.ceil(ttlMs)))
  }
}

const isOne = (reply: unknown): boolean => reply === 1

/** Far below what a script can take. */
const MOST_ENTRIES = 250

interface Asking {
  resolve(reply: unknown): void
  reject(error: unknown): void
}

/**
 * Calls for one shard: those of a tick go together, one that follows another by itself goes at once. Each is answered on
 * its own; a lost reply concerns all of its call.
 */
class LockBatch {
  private args: string[] = []
  private asking: Asking[] = []
  private inFlight = 0
  private lastWasAlone = false
  private readonly landed = (reply: unknown): unknown => {
    this.inFlight -= 1
    return reply
  }
  private readonly lost = (error: unknown): never => {
    this.inFlight -= 1
    throw error
  }
  private readonly flush = (): void => {
    const { args, asking } = this
    const [first] = asking
    if (!first) return
    this.args = []
    this.asking = []
    this.lastWasAlone = asking.length === 1
    this.send(args).then(
      (reply) => {
        if (asking.length === 1) first.resolve(reply)
        else for (const [n, one] of asking.entries()) one.resolve((reply as unknown[])[n])
      },
      (error: unknown) => {
        for (const one of asking) one.reject(error)
      },
    )
  }

  constructor(private readonly calls: StoreCalls) {}

  /** @returns the script's reply to this entry. */
  add(...entry: [what: string, lock: string, token: string, ttlMs: string]): Promise<unknown> {
    // Where calls have come by the tick, a first one of its own would only make two calls of each.
    if (this.lastWasAlone && this.inFlight === 0 && this.asking.length === 0) return this.send(entry)
    return new Promise((resolve, reject) => {
      if (this.asking.length >= MOST_ENTRIES) this.flush()
      // After the promise callbacks of this tick, whose continuations ask for more.
      if (this.asking.length === 0) process.nextTick(this.flush)
      this.args.push(...entry)
      this.asking.push({ resolve, reject })
    })
  }

  private send(args: string[]): Promise<unknown> {
    this.inFlight += 1
    const { calls } = this
    return calls.script('lock', calls.options.keys.lockFence, args).then(this.landed, this.lost)
  }
}
