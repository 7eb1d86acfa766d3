/** Fenced locks in Redis (S2): see `scripts/lock.lua`. What is asked for in one tick goes in one call. */
import { CheckedLocks, type CheckedLocksOptions, type FencedLock, type LockStore } from '@botmesh/core'
import { escapeName } from './keys.js'
import { atEndOfTick, CallPace } from './call-pace.js'
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
    return this.run('acquire', key, token, ttlMs, (fence) =>
      typeof fence === 'string' ? { token, fence: Number(fence) } : null,
    )
  }

  protected prolong(key: string, token: string, ttlMs: number): Promise<boolean> {
    return this.run('renew', key, token, ttlMs, isOne)
  }

  protected free(key: string, token: string): Promise<boolean> {
    return this.run('release', key, token, 1, isOne)
  }

  private run<T>(what: string, key: string, token: string, ttlMs: number, read: Read<T>): Promise<T> {
    const calls = this.calls.of(key)
    let batch = this.batches.get(calls)
    if (!batch) {
      batch = new LockBatch(calls)
      this.batches.set(calls, batch)
    }
    const name = `${calls.options.keys.base}lock:${this.kind}:${escapeName(key)}`
    return batch.add([what, name, token, String(Math.ceil(ttlMs))], read)
  }
}

/** What the script's reply to one entry says. */
type Read<T> = (reply: unknown) => T

const isOne = (reply: unknown): boolean => reply === 1

/** Far below what a script can take. */
const MOST_ENTRIES = 250

interface Asking {
  answered(reply: unknown): void
  failed(error: unknown): void
}

/**
 * Calls for one shard: those of a tick go together, one that follows another by itself goes at once. Each is answered on
 * its own; a lost reply concerns all of its call.
 */
class LockBatch {
  private args: string[] = []
  private asking: Asking[] = []
  /** The store's, when the first of these was asked for. */
  private closings = 0
  private readonly pace = new CallPace()
  private readonly lost = (error: unknown): never => {
    this.pace.ended()
    throw this.calls.failure(error, 'lock')
  }
  private readonly flush = (): void => {
    const { args, asking } = this
    const [first] = asking
    if (!first) return
    this.args = []
    this.asking = []
    const answered = (reply: unknown): void => {
      if (asking.length === 1) first.answered(reply)
      else for (const [n, one] of asking.entries()) one.answered((reply as unknown[])[n])
    }
    this.send(args, asking.length, answered, this.closings).catch((error: unknown) => {
      for (const one of asking) one.failed(error)
    })
  }

  constructor(private readonly calls: StoreCalls) {}

  /** @returns what the script says to this entry. */
  add<T>(entry: [what: string, lock: string, token: string, ttlMs: string], read: Read<T>): Promise<T> {
    if (this.pace.atOnce && this.asking.length === 0) return this.send(entry, 1, read)
    return new Promise((resolve, failed) => {
      if (this.asking.length >= MOST_ENTRIES) this.flush()
      if (this.asking.length === 0) {
        this.closings = this.calls.closings
        atEndOfTick(this.flush)
      }
      this.args.push(...entry)
      this.asking.push({ answered: (reply) => resolve(read(reply)), failed })
    })
  }

  /** As few promises as there can be: alone, a lock is as fast as what it takes to ask for it. */
  private send<T>(args: string[], entries: number, read: Read<T>, closings?: number): Promise<T> {
    const asked = this.calls.ask('lock', this.calls.options.keys.lockFence, args, closings)
    this.pace.began(entries)
    return asked.then((reply) => {
      this.pace.ended()
      return read(reply)
    }, this.lost)
  }
}
