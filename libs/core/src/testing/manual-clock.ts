/**
 * A clock that a test moves. Due timers run in order of their time, each followed by whatever promises it settled.
 *
 * `advance` is time in which the process runs; `freeze` is time in which it does not: timers that fell due meanwhile
 * fire afterwards, all late, as after a blocked event loop or a paused virtual machine (L2).
 */
import type { Clock, Timer } from '../contracts/clock.js'

interface Pending {
  dueAt: number
  order: number
  fn: () => void
}

export class ManualClock implements Clock {
  private elapsed = 0
  private wall: number
  private order = 0
  private readonly pending = new Set<Pending>()

  /** @param startMs wall-clock time at the start, milliseconds since the epoch. */
  constructor(startMs = Date.UTC(2030, 0, 1)) {
    this.wall = startMs
  }

  now(): number {
    return this.wall
  }

  monotonic(): number {
    return this.elapsed
  }

  /** Timers that have not fired. */
  get timers(): number {
    return this.pending.size
  }

  setTimeout(fn: () => void, ms: number): Timer {
    this.order += 1
    const timer: Pending = { dueAt: this.elapsed + Math.max(0, ms), order: this.order, fn }
    this.pending.add(timer)
    return { cancel: () => void this.pending.delete(timer) }
  }

  /** Moves the wall clock alone, also backwards. */
  shiftWall(ms: number): void {
    this.wall += ms
  }

  /** Lets `ms` pass while nothing runs. */
  freeze(ms: number): void {
    this.elapsed += ms
    this.wall += ms
  }

  /** Lets everything run that needs no time to pass. */
  async settle(): Promise<void> {
    await new Promise<void>((resolve) => setImmediate(resolve))
  }

  /** Lets `ms` pass, firing what falls due in between. */
  async advance(ms: number): Promise<void> {
    const end = this.elapsed + ms
    await this.settle()
    for (let next = this.next(end); next; next = this.next(end)) {
      this.fire(next)
      await this.settle()
    }
    this.moveTo(end)
    await this.settle()
  }

  /**
   * Fires one timer after another until `condition` holds.
   * @param limitMs most time that may pass, default one hour. @throws Error if it does not hold by then.
   * @returns how much time passed.
   */
  async advanceUntil(condition: () => boolean, limitMs = 3_600_000): Promise<number> {
    const start = this.elapsed
    const end = start + limitMs
    await this.settle()
    while (!condition()) {
      const next = this.next(end)
      if (!next)
        throw new Error(`The awaited condition did not come about within ${limitMs} ms of the test's clock.`)
      this.fire(next)
      await this.settle()
    }
    return this.elapsed - start
  }

  private next(end: number): Pending | undefined {
    let next: Pending | undefined
    for (const timer of this.pending) {
      if (timer.dueAt > end) continue
      if (!next || timer.dueAt < next.dueAt || (timer.dueAt === next.dueAt && timer.order < next.order))
        next = timer
    }
    return next
  }

  private fire(timer: Pending): void {
    this.pending.delete(timer)
    this.moveTo(Math.max(this.elapsed, timer.dueAt))
    timer.fn()
  }

  private moveTo(instant: number): void {
    this.wall += instant - this.elapsed
    this.elapsed = instant
  }
}
