/**
 * Plain tasks: `bot.every` and `bot.schedule` on every replica, from start to stop (J2). A task never overlaps
 * itself: an occurrence that comes while the previous run is still at work is left out. An error is reported, and
 * the next occurrence comes all the same.
 */
import type { Clock, Timer } from '../contracts/clock.js'
import type { Occurrences } from './occurrences.js'

/** Longest pause of one timer, by what the task counts by; longer ones are made of several. The time of day may be set. */
const LONGEST_MS = { monotonic: 2 ** 31 - 1, now: 60_000 }
/** An occurrence that is further away than the next one by this was planned by a clock that was wrong. */
const WRONG_MS = 24 * 60 * 60_000

export class PlainTask {
  private timer: Timer | null = null
  private running: Promise<void> | null = null
  private stopped = false

  constructor(
    private readonly clock: Clock,
    private readonly occurrences: Occurrences,
    private readonly run: () => unknown,
    private readonly report: (error: unknown) => void,
  ) {}

  /** Idempotent while it runs. */
  start(): void {
    if (this.timer !== null) return
    this.stopped = false
    this.plan(this.now)
  }

  /** No further occurrence. @returns when the present run has ended. */
  stop(): Promise<void> {
    this.stopped = true
    this.timer?.cancel()
    this.timer = null
    return this.running ?? Promise.resolve()
  }

  private get now(): number {
    return this.clock[this.occurrences.clock]()
  }

  private plan(fromMs: number): void {
    if (this.stopped) return
    const dueAt = this.occurrences.next(fromMs)
    if (dueAt === null) return
    this.wait(dueAt)
  }

  private wait(dueAt: number): void {
    const look = (): void => {
      if (this.now < dueAt) return this.isPlausible(dueAt) ? this.wait(dueAt) : this.plan(this.now)
      this.occur()
      // From the planned time on, so that intervals do not drift; what was missed meanwhile is left out.
      this.plan(Math.max(dueAt, this.now - 1))
    }
    const ms = Math.min(Math.max(0, dueAt - this.now), LONGEST_MS[this.occurrences.clock])
    this.timer = this.clock.setTimeout(look, ms)
  }

  private isPlausible(dueAt: number): boolean {
    if (this.occurrences.clock === 'monotonic') return true
    return dueAt - (this.occurrences.next(this.now) ?? dueAt) < WRONG_MS
  }

  private occur(): void {
    if (this.running !== null) return
    this.running = this.once().finally(() => (this.running = null))
  }

  private async once(): Promise<void> {
    try {
      await this.run()
    } catch (error) {
      this.report(error)
    }
  }
}
