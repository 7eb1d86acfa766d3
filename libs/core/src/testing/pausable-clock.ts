/**
 * One replica's view of a clock that several share: while it is paused its timers do not fire, as in a process that
 * is stopped; afterwards those that fell due fire at once, all late. Time itself goes on (L2).
 */
import type { Clock, Timer } from '../contracts/clock.js'

export class PausableClock implements Clock {
  private paused = false
  private late: (() => void)[] = []

  constructor(private readonly clock: Clock) {}

  now(): number {
    return this.clock.now()
  }

  monotonic(): number {
    return this.clock.monotonic()
  }

  setTimeout(fn: () => void, ms: number, options?: { background?: boolean }): Timer {
    let cancelled = false
    const fire = (): void => {
      if (cancelled) return
      if (this.paused) this.late.push(fire)
      else fn()
    }
    const timer = this.clock.setTimeout(fire, ms, options)
    return {
      cancel: () => {
        cancelled = true
        timer.cancel()
      },
    }
  }

  pause(): void {
    this.paused = true
  }

  resume(): void {
    this.paused = false
    for (const fire of this.late.splice(0)) fire()
  }
}
