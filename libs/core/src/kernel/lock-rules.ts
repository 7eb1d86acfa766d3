/** What all stores ask of the arguments of a fenced lock (S2), before anything is sent. */
import type { Random } from '../contracts/clock.js'
import { ConfigError } from '../contracts/errors.js'

/**
 * A token for one acquisition of `key`. It ends in a mark of the key, so that a token of another lock, or none at all, is
 * told from one that has run out.
 */
export function newLockToken(key: string, random: Random): string {
  return random.uuid() + markOf(key)
}

/** @throws ConfigError for a token that no acquisition of `key` has given; it names the lock, and not the token. */
export function requireLockToken(key: string, token: string): void {
  if (typeof token === 'string' && token.endsWith(markOf(key))) return
  const accepted = 'the token of what acquireLockFenced gave for this very lock'
  throw new ConfigError(`The token for lock "${key}" is not one of this lock; accepted: ${accepted}.`, {
    option: 'token',
    accepted,
  })
}

/** @throws ConfigError for a time to live that is not positive. */
export function requireLockTtl(ttlMs: number): void {
  if (Number.isFinite(ttlMs) && ttlMs > 0) return
  const accepted = 'milliseconds, more than 0'
  throw new ConfigError(`Option "ttlMs" is ${String(ttlMs)}; accepted: ${accepted}.`, {
    option: 'ttlMs',
    value: ttlMs,
    accepted,
  })
}

/** FNV-1a: against mix-ups, not against attacks, and on the path of every lock. */
function markOf(key: string): string {
  let hash = 0x811c9dc5
  for (let at = 0; at < key.length; at += 1) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
  return `#${(hash >>> 0).toString(36)}`
}
