/** Waiting for what becomes true, with an error that says what did not. */
import { setTimeout as delay } from 'node:timers/promises'

export interface WaitForOptions {
  /** What is waited for, for the error: `'the second replica leads'`; a function can say how far it came. */
  what: string | (() => string)
  /** Default 10 s. */
  timeoutMs?: number
}

/**
 * Asks `condition` again and again, first at once, until it returns something truthy, and returns that.
 * A condition that throws counts as not yet true; its last error is the cause of the time-out.
 * Prefer an event where there is one.
 */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  { what, timeoutMs = 10_000 }: WaitForOptions,
): Promise<NonNullable<T>> {
  const deadline = performance.now() + timeoutMs
  let cause: unknown
  for (let pauseMs = 1; ; pauseMs = Math.min(50, pauseMs * 2)) {
    try {
      const value = await condition()
      if (value) return value
      cause = undefined
    } catch (error) {
      cause = error
    }
    if (performance.now() > deadline) {
      const text = typeof what === 'string' ? what : what()
      throw new Error(`Not within ${timeoutMs} ms: ${text}`, { cause })
    }
    await delay(pauseMs)
  }
}
