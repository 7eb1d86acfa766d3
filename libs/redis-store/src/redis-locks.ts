/** Fenced locks in Redis (S2): see `scripts/lock.lua`. What is asked for in one tick goes in one call. */
import { ConfigError, type FencedLock, type LockStore, type Random } from '@botmesh/core'
import { escapeName } from './keys.js'
import type { StoreCalls } from './store-calls.js'

/** A lease backend for the scheduler: fenced leases by name, apart from the application's locks. */
export type RedisLeases = Pick<LockStore, 'acquireLockFenced' | 'renewLock' | 'releaseLock'>

/** The store's calls for each key: of the shard that it belongs to. */
interface CallsByKey {
  of(key: string): StoreCalls
}

export class RedisLocks implements RedisLeases {
  private readonly batches = new Map<StoreCalls, LockBatch>()

  constructor(
    private readonly calls: CallsByKey,
    private readonly random: Random,
    /** Keeps locks of different purposes apart. */
    private readonly kind: 'lock' | 'lease',
  ) {}

  async acquireLockFenced(key: string, ttlMs: number): Promise<FencedLock | null> {
    const token = this.random.uuid()
    const fence = await this.run('acquire', key, token, ttlMs)
    return typeof fence === 'string' ? { token, fence: Number(fence) } : null
  }

  async renewLock(key: string, token: string, ttlMs: number): Promise<boolean> {
    return (await this.run('renew', key, token, ttlMs)) === 1
  }

  async releaseLock(key: string, token: string): Promise<boolean> {
    return (await this.run('release', key, token, 1)) === 1
  }

  private run(what: string, key: string, token: string, ttlMs: number): Promise<unknown> {
    if (!(Number.isFinite(ttlMs) && ttlMs > 0)) return Promise.reject(impossibleTtl(ttlMs))
    const calls = this.calls.of(key)
    let batch = this.batches.get(calls)
    if (!batch) {
      batch = new LockBatch(calls)
      this.batches.set(calls, batch)
    }
    return batch.add(what, `${this.kind}:${escapeName(key)}`, token, String(Math.ceil(ttlMs)))
  }
}

function impossibleTtl(ttlMs: number): ConfigError {
  const accepted = 'milliseconds, more than 0'
  return new ConfigError(`Option "ttlMs" is ${ttlMs}; accepted: ${accepted}.`, {
    option: 'ttlMs',
    value: ttlMs,
    accepted,
  })
}

/** Far below what a script can take. */
const MOST_ENTRIES = 250

interface Asking {
  resolve(reply: unknown): void
  reject(error: unknown): void
}

/** Gathers the calls of one tick for one shard. Each is answered on its own; a lost reply concerns them all. */
class LockBatch {
  private args: string[] = []
  private asking: Asking[] = []
  private readonly flush = (): void => {
    if (this.asking.length === 0) return
    const { args, asking } = this
    this.args = []
    this.asking = []
    this.send(args, asking).catch((error: unknown) => {
      for (const one of asking) one.reject(error)
    })
  }

  constructor(private readonly calls: StoreCalls) {}

  add(...entry: [what: string, name: string, token: string, ttlMs: string]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.asking.length >= MOST_ENTRIES) this.flush()
      // After the promise callbacks of this tick, whose continuations ask for more.
      if (this.asking.length === 0) process.nextTick(this.flush)
      this.args.push(...entry)
      this.asking.push({ resolve, reject })
    })
  }

  private async send(args: string[], asking: readonly Asking[]): Promise<void> {
    const { keys } = this.calls.options
    const replies = (await this.calls.script('lock', keys.holders, [keys.base, ...args])) as unknown[]
    for (const [n, one] of asking.entries()) one.resolve(replies[n])
  }
}
