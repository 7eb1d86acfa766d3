/** Waits for work no longer than a time, or until a signal says so; the work itself goes on. */
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

/** What `work` comes to. @throws the reason of `signal` as soon as it aborts; what `work` comes to then is ignored. */
export async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let onAbort: () => void = () => undefined
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([aborted, work])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
