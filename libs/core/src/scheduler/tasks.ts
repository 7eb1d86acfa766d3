/**
 * Plain tasks: `bot.every` and `bot.schedule` on every replica, from start to stop (J2). A task never overlaps
 * itself: an occurrence that comes while the previous run is still at work is left out. An error is reported, and
 * the next occurrence comes all the same.
 */
import { Cron } from 'croner'
import type { Clock, Timer } from '../contracts/clock.js'
import { ConfigError } from '../contracts/errors.js'
import { describeValue } from '../kernel/duration.js'

/** When a task runs. */
export interface Occurrences {
  /** The first one after `nowMs`; null if there is none. */
  next(nowMs: number): number | null
  /** Whose milliseconds these are: an interval must not stand still because somebody set the time of day back. */
  clock: 'monotonic' | 'now'
}

/** Every so many milliseconds, first after one interval. */
export function interval(ms: number): Occurrences {
  return { next: (nowMs) => nowMs + ms, clock: 'monotonic' }
}

/** @throws ConfigError that shows the expression. */
export function cron(expression: string, timeZone: string | undefined): Occurrences {
  let parsed: Cron
  try {
    parsed = new Cron(expression, { paused: true, ...(timeZone === undefined ? {} : { timezone: timeZone }) })
    // Also checks the time zone, which is otherwise noticed at the first occurrence only.
    parsed.nextRun()
  } catch (error) {
    const accepted = "five or six cron fields, such as '0 9 * * 1-5', and an IANA time zone"
    throw new ConfigError(
      `The schedule ${describeValue(expression)} (${timeZone ?? 'local time'}) cannot be read; accepted: ${accepted}.`,
      { option: 'schedule', value: expression, accepted },
      error,
    )
  }
  return { next: (nowMs) => parsed.nextRun(new Date(nowMs))?.getTime() ?? null, clock: 'now' }
}

/** Longest pause of one timer; longer ones are made of several. */
const LONGEST_MS = 2 ** 31 - 1

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
    const leftMs = Math.max(0, dueAt - this.now)
    this.timer = this.clock.setTimeout(
      () => {
        if (leftMs > LONGEST_MS) return this.wait(dueAt)
        this.occur()
        // From the planned time on, so that intervals do not drift; what was missed meanwhile is left out.
        this.plan(Math.max(dueAt, this.now - 1))
      },
      Math.min(leftMs, LONGEST_MS),
    )
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
