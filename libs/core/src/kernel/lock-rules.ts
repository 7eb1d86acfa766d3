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

/** @throws ConfigError for a token that no acquisition of `key` has given; it names the lock, and not the token. And for what
 * is no name. */
export function requireLockToken(key: string, token: string): void {
  requireLockKey(key)
  if (typeof token === 'string' && token.endsWith(markOf(key))) return
  const accepted = 'the token of what acquireLockFenced gave for this very lock'
  throw new ConfigError(`The token for lock "${key}" is not one of this lock; accepted: ${accepted}.`, {
    option: 'token',
    accepted,
  })
}

/** @throws ConfigError for what is no name. */
export function requireLockKey(key: string): void {
  if (typeof key === 'string' && key !== '') return
  const accepted = 'a text that is not empty'
  const shown = typeof key === 'string' ? '""' : key === null ? 'null' : `of type ${typeof key}`
  throw new ConfigError(`The name of a lock is ${shown}; accepted: ${accepted}.`, { option: 'key', accepted })
}

/** @throws ConfigError for a time to live that is not positive, or that no server could add to the time. */
export function requireLockTtl(ttlMs: number): void {
  if (ttlMs > 0 && ttlMs <= Number.MAX_SAFE_INTEGER) return
  const accepted = 'milliseconds, more than 0 and at most 2^53 - 1'
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
