/**
 * Time and chance, passed in. Everything that waits or draws a number takes these, so that tests decide what
 * time it is (`ManualClock`) and a failure can be repeated. Time of a store is never compared with this clock.
 */

/** A pending call. */
export interface Timer {
  /** Idempotent; after it the callback never runs. */
  cancel(): void
}

export interface Clock {
  /** Milliseconds since the epoch: for records and logs, never for deadlines. */
  now(): number
  /** Milliseconds of a clock that never steps back: for every deadline (L2). */
  monotonic(): number
  /**
   * Calls `fn` once, no earlier than `ms` from now.
   * @param options.background true: does not keep the process alive.
   */
  setTimeout(fn: () => void, ms: number, options?: { background?: boolean }): Timer
}

export interface Random {
  uuid(): string
  /** A number in [0, 1). */
  next(): number
}
