/** Waits for work no longer than a time; the work itself goes on. */
import type { Clock, Timer } from '../contracts/clock.js'

/** True if `work` was done within `ms`. */
export function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer: Timer = clock.setTimeout(() => resolve(false), ms)
    void work.then(() => {
      timer.cancel()
      resolve(true)
    })
  })
}
