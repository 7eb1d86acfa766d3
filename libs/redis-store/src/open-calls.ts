/**
 * The calls of one connection that are not answered yet, and how long each may take. One timer for all of them: they come
 * by the thousand, and hardly one is ever late.
 */
import type { Clock, Timer } from '@botmesh/core'

export interface OpenCall {
  /** Instant of the monotonic clock. */
  deadline: number
  /** Answered, or given up. */
  over: boolean
  reject(error: unknown): void
}

export class OpenCalls {
  /** In the order in which they were made. */
  private calls: OpenCall[] = []
  private watch: Timer | null = null

  /** @param onLate what becomes of calls that took too long; they are over by then. */
  constructor(
    private readonly clock: Clock,
    private readonly onLate: (late: readonly OpenCall[]) => void,
  ) {}

  add(reject: (error: unknown) => void, timeoutMs: number): OpenCall {
    const call: OpenCall = { deadline: this.clock.monotonic() + timeoutMs, over: false, reject }
    while (this.calls[0]?.over) this.calls.shift()
    this.calls.push(call)
    this.watch ??= this.lookLater(timeoutMs)
    return call
  }

  /** Gives all up. @returns those that were not answered. */
  clear(): OpenCall[] {
    this.watch?.cancel()
    this.watch = null
    const open = this.calls.filter((call) => !call.over)
    this.calls = []
    for (const call of open) call.over = true
    return open
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
    const open = this.calls.filter((call) => !call.over)
    const late = open.filter((call) => call.deadline <= now)
    this.calls = open.filter((call) => call.deadline > now)
    for (const call of late) call.over = true
    const next = Math.min(...this.calls.map((call) => call.deadline))
    if (this.calls.length > 0) this.watch = this.lookLater(Math.max(1, next - now))
    if (late.length > 0) this.onLate(late)
  }
}
