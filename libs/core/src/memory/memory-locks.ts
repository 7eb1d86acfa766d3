/** Fenced locks in memory (S2). */
import type { Clock, Random } from '../contracts/clock.js'
import { ConfigError } from '../contracts/errors.js'
import { LockStore, type FencedLock } from '../contracts/lock-store.js'

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
      requirePositive(ttlMs)
      const now = this.clock.now()
      const held = this.held.get(key)
      if (held && held.expiresAt > now) return null
      // One sequence for all keys, begun at the clock: grows also where a key was forgotten.
      this.lastFence = Math.max(this.lastFence + 1, Math.floor(now * 1000))
      const lock = { token: this.random.uuid(), fence: this.lastFence }
      this.held.set(key, { ...lock, expiresAt: now + ttlMs })
      return lock
    })
  }

  renewLock(key: string, token: string, ttlMs: number): Promise<boolean> {
    return attempt(() => {
      requirePositive(ttlMs)
      const held = this.current(key, token)
      if (held) held.expiresAt = this.clock.now() + ttlMs
      return held !== undefined
    })
  }

  releaseLock(key: string, token: string): Promise<boolean> {
    return attempt(() => this.current(key, token) !== undefined && this.held.delete(key))
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

function requirePositive(ttlMs: number): void {
  if (Number.isFinite(ttlMs) && ttlMs > 0) return
  throw new ConfigError(`Option "ttlMs" is ${String(ttlMs)}; accepted: milliseconds above 0.`, {
    option: 'ttlMs',
    value: ttlMs,
    accepted: 'milliseconds above 0',
  })
}
