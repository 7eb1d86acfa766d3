/**
 * One replica's view of a clock that several share: while it is paused its timers do not fire, as in a process that
 * is stopped; afterwards those that fell due fire at once, all late. Time itself goes on (L2).
 */
import type { Clock, Timer } from '../contracts/clock.js'

export class PausableClock implements Clock {
  private state: 'running' | 'paused' | 'stopped' = 'running'
  private late: (() => void)[] = []
  private readonly pending = new Set<Timer>()

  constructor(private readonly clock: Clock) {}

  now(): number {
    return this.clock.now()
  }

  monotonic(): number {
    return this.clock.monotonic()
  }

  setTimeout(fn: () => void, ms: number, options?: { background?: boolean }): Timer {
    if (this.state === 'stopped') return { cancel: () => undefined }
    let cancelled = false
    const fire = (): void => {
      this.pending.delete(timer)
      if (cancelled) return
      if (this.state === 'paused') this.late.push(fire)
      else if (this.state === 'running') fn()
    }
    const timer = this.clock.setTimeout(fire, ms, options)
    this.pending.add(timer)
    return {
      cancel: () => {
        cancelled = true
        this.pending.delete(timer)
        timer.cancel()
      },
    }
  }

  pause(): void {
    if (this.state === 'running') this.state = 'paused'
  }

  resume(): void {
    if (this.state === 'paused') this.state = 'running'
    for (const fire of this.late.splice(0)) fire()
  }

  /** For good, as a dead process: nothing fires any more, and nothing is left that keeps the test's process alive. */
  stop(): void {
    this.state = 'stopped'
    for (const timer of this.pending) timer.cancel()
    this.pending.clear()
    this.late = []
  }
}
