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
  /**
   * Prolongs to `ttlMs` from now; false if it had run out. Idempotent.
   * @throws ConfigError for a TTL that is not positive, and for a token that is not one of this lock.
   */
  abstract renewLock(key: string, token: string, ttlMs: number): Promise<boolean>
  /**
   * Frees it; false if it had run out, which stores on a server also say in the log: it may happen to anybody who is slow,
   * and is no reason to throw in a `finally`. Idempotent in effect.
   * @throws ConfigError for a token that is not one of this lock.
   */
  abstract releaseLock(key: string, token: string): Promise<boolean>
}
