/** Fenced locks in memory (S2). */
import type { Clock, Random } from '../contracts/clock.js'
import { LockStore, type FencedLock } from '../contracts/lock-store.js'
import { newLockToken, requireLockKey, requireLockToken, requireLockTtl } from '../kernel/lock-rules.js'

interface Held extends FencedLock {
  expiresAt: number
}

export class MemoryLocks extends LockStore {
  private readonly held = new Map<string, Held>()
  private lastFence = 0

  constructor(
    private readonly clock: Clock,
    private readonly random: Random,
  ) {
    super()
  }

  acquireLockFenced(key: string, ttlMs: number): Promise<FencedLock | null> {
    return attempt(() => {
      requireLockKey(key)
      requireLockTtl(ttlMs)
      const now = this.clock.now()
      const held = this.held.get(key)
      if (held && held.expiresAt > now) return null
      // One sequence for all keys, begun at the clock: grows also where a key was forgotten.
      this.lastFence = Math.max(this.lastFence + 1, Math.floor(now * 1000))
      const lock = { token: newLockToken(key, this.random), fence: this.lastFence }
      this.held.set(key, { ...lock, expiresAt: now + ttlMs })
      return lock
    })
  }

  renewLock(key: string, token: string, ttlMs: number): Promise<boolean> {
    return attempt(() => {
      requireLockTtl(ttlMs)
      requireLockToken(key, token)
      const held = this.current(key, token)
      if (held) held.expiresAt = this.clock.now() + ttlMs
      return held !== undefined
    })
  }

  releaseLock(key: string, token: string): Promise<boolean> {
    return attempt(() => {
      requireLockToken(key, token)
      return this.current(key, token) !== undefined && this.held.delete(key)
    })
  }

  private current(key: string, token: string): Held | undefined {
    const held = this.held.get(key)
    return held?.token === token && held.expiresAt > this.clock.now() ? held : undefined
  }
}

/** Runs at once, and answers like anything that goes over a network: as a promise. */
export async function attempt<T>(work: () => T): Promise<T> {
  return work()
}
