/** The machine's clock and randomness: the only place that touches them. */
import { randomUUID } from 'node:crypto'
import type { Clock, Random } from '../contracts/clock.js'

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout(fn, ms, options) {
    const timer = setTimeout(fn, ms)
    if (options?.background === true) timer.unref()
    return { cancel: () => clearTimeout(timer) }
  },
}

export const systemRandom: Random = { uuid: () => randomUUID(), next: () => Math.random() }
