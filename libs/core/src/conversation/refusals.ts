/**
 * Refuses what revoked code tries. Code such as `for (;;) { try { return await c.ask(…) } catch { … } }` would spin
 * in microtasks and block the process if each refusal came at once, so after a few of them the others come slowly.
 */
import type { Clock } from '../contracts/clock.js'
import type { LeaseLostError } from '../contracts/errors.js'

const AT_ONCE = 20
const SLOW_MS = 1_000

export class Refusals {
  #count = 0

  constructor(private readonly clock: Clock) {}

  refuse(error: LeaseLostError): Promise<never> {
    if (++this.#count <= AT_ONCE) return Promise.reject(error)
    return new Promise((_resolve, reject) => {
      this.clock.setTimeout(() => reject(error), SLOW_MS, { background: true })
    })
  }
}
