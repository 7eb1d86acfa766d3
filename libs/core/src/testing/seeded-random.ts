/** Chance that can be repeated: the same seed gives the same numbers. */
import type { Random } from '../contracts/clock.js'
import { systemClock } from '../runtime/system-clock.js'

export class SeededRandom implements Random {
  private state: number

  constructor(readonly seed: number) {
    this.state = seed >>> 0
  }

  /** Mulberry32: small, and good enough to choose among test operations. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0
    let mixed = this.state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number in [0, below). */
  int(below: number): number {
    return Math.floor(this.next() * below)
  }

  pick<T>(from: readonly T[]): T {
    const one = from[this.int(from.length)]
    if (one === undefined) throw new Error('Nothing to pick from.')
    return one
  }

  uuid(): string {
    const hex = Array.from({ length: 32 }, () => this.int(16).toString(16)).join('')
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
  }
}

/** A seed for this run: from the environment variable `SEED`, to repeat a failure, else by the clock. */
export function seedOfRun(): number {
  const given = Number(process.env['SEED'])
  return Number.isSafeInteger(given) && given > 0 ? given : systemClock.now() % 2 ** 31
}
