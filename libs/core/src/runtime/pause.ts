/** Waiting that ends early when it must. */
import type { Clock } from '../contracts/clock.js'

/** Resolves after `ms`, or as soon as `signal` aborts. Never rejects. */
export async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => {
    const end = () => {
      timer.cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = clock.setTimeout(end, ms)
    signal.addEventListener('abort', end, { once: true })
  })
}
