/** Locks with fences for the application's own critical sections (S2). There is no lock without a fence. */
export interface FencedLock {
  /** Secret of this acquisition: what renews and releases. */
  token: string
  /** Strictly greater than that of every earlier acquisition of the key. */
  fence: number
}

export abstract class LockStore {
  /**
   * Takes the lock if it is free. Atomic; if the reply is lost the lock may be held until its TTL ends.
   * @param ttlMs how long it is held unless renewed, > 0. @returns null if somebody holds it.
   * @throws ConfigError for a TTL that is not positive.
   */
  abstract acquireLockFenced(key: string, ttlMs: number): Promise<FencedLock | null>
  /** Prolongs to `ttlMs` from now; false if this token does not hold it (any more). Idempotent. */
  abstract renewLock(key: string, token: string, ttlMs: number): Promise<boolean>
  /** Frees it; false if this token does not hold it, which stores on a server also say in the log, with the key (a lock that
   * ran out is no reason to throw in everybody's `finally`). Idempotent in effect. */
  abstract releaseLock(key: string, token: string): Promise<boolean>
}

/** For stores: what a warning says where `releaseLock` answers false. */
export const FOREIGN_TOKEN =
  'a lock was released with a token that does not hold it: it had run out, or somebody else has it'
