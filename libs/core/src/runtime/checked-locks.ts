/** Fenced locks of a store (S2): what is the same wherever they are kept. A store says how one is taken, prolonged, freed. */
import type { Random } from '../contracts/clock.js'
import { LockStore, type FencedLock } from '../contracts/lock-store.js'
import type { Logger } from '../contracts/logger.js'
import { newLockToken, requireLockKey, requireLockToken, requireLockTtl } from '../kernel/lock-rules.js'

export interface CheckedLocksOptions {
  random: Random
  logger: Logger
  /** Locks of the application, or leases of the scheduler: kept apart, and only of the former it is said that one was lost. */
  kind: 'lock' | 'lease'
}

/** Taking and freeing are not `async`: the promises that would make are a twentieth of what a lock costs by itself. */
export abstract class CheckedLocks extends LockStore {
  protected readonly kind: CheckedLocksOptions['kind']

  constructor(private readonly options: CheckedLocksOptions) {
    super()
    this.kind = options.kind
  }

  acquireLockFenced(key: string, ttlMs: number): Promise<FencedLock | null> {
    try {
      requireLockKey(key)
      requireLockTtl(ttlMs)
      return this.take(key, newLockToken(key, this.options.random), ttlMs)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async renewLock(key: string, token: string, ttlMs: number): Promise<boolean> {
    requireLockTtl(ttlMs)
    requireLockToken(key, token)
    return this.prolong(key, token, ttlMs)
  }

  releaseLock(key: string, token: string): Promise<boolean> {
    try {
      requireLockToken(key, token)
      return this.free(key, token).then((freed) => {
        if (!freed) this.tellLost(key)
        return freed
      })
    } catch (error) {
      return Promise.reject(error)
    }
  }

  private tellLost(key: string): void {
    if (this.kind !== 'lock') return
    this.options.logger.warn(
      { lock: key },
      'a lock was released that was no longer held: it had run out, and somebody else may have it',
    )
  }

  /** Takes the lock with `token` if it is free. @returns null if somebody holds it. */
  protected abstract take(key: string, token: string, ttlMs: number): Promise<FencedLock | null>
  /** @returns false if `token` does not hold it. */
  protected abstract prolong(key: string, token: string, ttlMs: number): Promise<boolean>
  /** @returns false if `token` does not hold it. */
  protected abstract free(key: string, token: string): Promise<boolean>
}
