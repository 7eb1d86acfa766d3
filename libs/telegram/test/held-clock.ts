/**
 * A clock that stands still until it is told to move: for pauses that a test does not want to sit through, in code
 * that also waits for a real server (core's ManualClock would not wait for that).
 */
import type { Clock, Timer } from '@botmesh/core'

export class HeldClock implements Clock {
  private time = 0
  private pending: { at: number; fn: () => void }[] = []
  private readonly watchers: (() => void)[] = []

  now(): number {
    return 1_767_225_600_000 + this.time
  }

  monotonic(): number {
    return this.time
  }

  setTimeout(fn: () => void, ms: number): Timer {
    const entry = { at: this.time + ms, fn }
    this.pending.push(entry)
    for (const wake of this.watchers.splice(0)) wake()
    return { cancel: () => void (this.pending = this.pending.filter((one) => one !== entry)) }
  }

  /** Milliseconds until the next call, if any. */
  get nextMs(): number | undefined {
    return this.pending.length === 0 ? undefined : Math.min(...this.pending.map((one) => one.at)) - this.time
  }

  /** Resolves once something waits. */
  async armed(): Promise<void> {
    while (this.pending.length === 0) await new Promise<void>((resolve) => this.watchers.push(resolve))
  }

  advance(ms: number): void {
    this.time += ms
    const due = this.pending.filter((one) => one.at <= this.time)
    this.pending = this.pending.filter((one) => one.at > this.time)
    for (const entry of due) entry.fn()
  }
}
