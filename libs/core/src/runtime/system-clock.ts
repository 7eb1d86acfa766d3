/** The machine's clock and randomness: the only place that touches them. */
import { randomUUID } from 'node:crypto'
import type { Clock, Random } from '../contracts/clock.js'

/** Node takes a longer pause than this for 1 ms. */
const LONGEST_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout(fn, ms, options) {
    let timer: NodeJS.Timeout
    const arm = (leftMs: number): void => {
      const next = leftMs > LONGEST_MS ? () => arm(leftMs - LONGEST_MS) : fn
      timer = setTimeout(next, Math.min(leftMs, LONGEST_MS))
      if (options?.background === true) timer.unref()
    }
    arm(ms)
    return { cancel: () => clearTimeout(timer) }
  },
}

export const systemRandom: Random = { uuid: () => randomUUID(), next: () => Math.random() }
