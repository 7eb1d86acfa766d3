/** Fenced locks in Redis (S2): see `scripts/lock.lua`. */
import { ConfigError, type FencedLock, type LockStore, type Random } from '@botmesh/core'
import { escapeName } from './keys.js'
import type { StoreShards } from './store-shards.js'

/** A lease backend for the scheduler: fenced leases by name, apart from the application's locks. */
export type RedisLeases = Pick<LockStore, 'acquireLockFenced' | 'renewLock' | 'releaseLock'>

export class RedisLocks implements RedisLeases {
  constructor(
    private readonly calls: StoreShards,
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

  private async run(what: string, key: string, token: string, ttlMs: number): Promise<unknown> {
    if (!(Number.isFinite(ttlMs) && ttlMs > 0)) {
      const accepted = 'milliseconds, more than 0'
      throw new ConfigError(`Option "ttlMs" is ${ttlMs}; accepted: ${accepted}.`, {
        option: 'ttlMs',
        value: ttlMs,
        accepted,
      })
    }
    const calls = this.calls.of(key)
    const { keys } = calls.options
    const args = [keys.base, what, `${this.kind}:${escapeName(key)}`, token, String(Math.ceil(ttlMs))]
    return calls.script('lock', keys.holders, args)
  }
}
