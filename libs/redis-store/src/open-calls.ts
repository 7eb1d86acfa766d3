/**
 * The calls of one connection that are not answered yet, and how long each may take. One timer for all of them: they come
 * by the thousand, and hardly one is ever late.
 */
import type { Clock, Timer } from '@botmesh/core'

/** What was sent: it knows when it is answered, so that nobody has to tell. */
export interface SentCall {
  readonly isSettled: boolean
  /** Gives it up; without effect if it is settled. */
  reject(error: Error): void
}

interface OpenCall {
  /** Instant of the monotonic clock. */
  readonly deadline: number
  readonly sent: SentCall
}

export class OpenCalls {
  /** In the order in which they were made. */
  private calls: OpenCall[] = []
  private watch: Timer | null = null

  /** @param onLate what becomes of calls that took too long. */
  constructor(
    private readonly clock: Clock,
    private readonly onLate: (late: readonly SentCall[]) => void,
  ) {}

  add(sent: SentCall, timeoutMs: number): void {
    while (this.calls[0]?.sent.isSettled) this.calls.shift()
    this.calls.push({ deadline: this.clock.monotonic() + timeoutMs, sent })
    this.watch ??= this.lookLater(timeoutMs)
  }

  /** Forgets all. @returns those that were not answered. */
  clear(): SentCall[] {
    this.watch?.cancel()
    this.watch = null
    const open = this.calls.filter(({ sent }) => !sent.isSettled)
    this.calls = []
    return open.map(({ sent }) => sent)
  }

  /** Looks after `ms`, and a moment later, when the sockets have been read: a process that stood still finds answers there
   * that came in time, and the timers of that time fire first. */
  private lookLater(ms: number): Timer {
    return this.clock.setTimeout(
      () => {
        this.watch = this.clock.setTimeout(() => this.look(), 1, { background: true })
      },
      ms,
      { background: true },
    )
  }

  private look(): void {
    this.watch = null
    const now = this.clock.monotonic()
    const open = this.calls.filter(({ sent }) => !sent.isSettled)
    const late = open.filter((call) => call.deadline <= now)
    this.calls = open.filter((call) => call.deadline > now)
    const next = Math.min(...this.calls.map((call) => call.deadline))
    if (this.calls.length > 0) this.watch = this.lookLater(Math.max(1, next - now))
    if (late.length > 0) this.onLate(late.map(({ sent }) => sent))
  }
}
