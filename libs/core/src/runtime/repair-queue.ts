/**
 * Releases, withdrawals and commits that have to be answered (L3): each is sent at once; if its fate is unknown it is
 * repeated, identically, by a timer and with every heartbeat (which has a connection of its own), until somebody
 * answers or the session that it belongs to is gone. A chat is so never stuck behind a live replica.
 */
import { CoordinationUnavailableError } from '../contracts/errors.js'
import type { Timer } from '../contracts/clock.js'
import type { CommitResult } from '../contracts/state-store.js'
import { Backoff } from './backoff.js'
import { Bag } from './churn-tables.js'
import type { BackendContext, CoordinationBackend, Repair, RepairReply } from './coordination-backend.js'

/** How a repair ended: answered, or its session was lost first. */
export type RepairEnd = Exclude<RepairReply, 'unknown'> | 'session-lost'

interface Item {
  readonly repair: Repair
  readonly end: (outcome: RepairEnd) => void
  /** Called when the first attempt is over; null from then on, or if nobody asked. */
  firstTried: (() => void) | null
  /** The first attempt is not over. */
  first: boolean
  inFlight: boolean
  ended: boolean
  /** In `firstTries`. */
  place: number
}

export class RepairQueue {
  /** Those whose first attempt failed, oldest first. */
  private readonly pending = new Set<Item>()
  private readonly firstTries = new Bag<Item>()
  private timer: Timer | null = null
  private readonly backoff: Backoff

  constructor(
    private readonly backend: CoordinationBackend,
    private readonly context: BackendContext,
  ) {
    this.backoff = new Backoff(context.random, 20, context.leaseMs / 6)
  }

  /**
   * Sends `repair` until it is answered.
   * @param end called once: with the answer, or when its session is gone.
   * @param firstTried called when the first attempt is over, whatever came of it.
   */
  run(repair: Repair, end: (outcome: RepairEnd) => void, firstTried?: () => void): void {
    const item: Item = {
      repair,
      end,
      firstTried: firstTried ?? null,
      first: true,
      inFlight: false,
      ended: false,
      place: -1,
    }
    this.firstTries.add(item)
    this.attempt(item)
  }

  /** What the next heartbeat should carry. */
  snapshot(): Repair[] {
    return [...this.pending].map((item) => item.repair)
  }

  /** Answers to a `snapshot`, same order. */
  answered(repairs: readonly Repair[], replies: readonly RepairReply[]): void {
    const byRepair = new Map([...this.pending].map((item) => [item.repair, item]))
    repairs.forEach((repair, index) => {
      const item = byRepair.get(repair)
      const reply = replies[index]
      if (item && reply !== undefined && reply !== 'unknown') this.finish(item, reply)
    })
  }

  /** Repeats now: the connection is back. */
  hurry(): void {
    this.backoff.reset()
    this.flush()
  }

  /** Nothing of this session can be repaired any more, and nothing needs to be: it lapsed with all it held. */
  abandon(session: string): void {
    for (const item of [...this.pending, ...this.firstTries.toArray()]) {
      if (item.repair.session === session) this.finish(item, 'session-lost')
    }
  }

  /** Resolves when nothing is outstanding, or after `ms`. */
  async drained(ms: number): Promise<void> {
    if (this.pending.size === 0 && this.firstTries.size === 0) return
    await new Promise<void>((resolve) => {
      const limit = this.context.clock.setTimeout(resolve, ms)
      const check = (): void => {
        if (this.pending.size > 0 || this.firstTries.size > 0) return
        limit.cancel()
        resolve()
      }
      this.onDrained = check
      check()
    })
    this.onDrained = null
  }
  private onDrained: (() => void) | null = null

  private finish(item: Item, outcome: RepairEnd): void {
    if (item.ended) return
    item.ended = true
    this.firstTries.delete(item)
    if (this.pending.delete(item) && this.pending.size === 0) {
      this.timer?.cancel()
      this.timer = null
      this.backoff.reset()
    }
    item.end(outcome)
    this.onDrained?.()
  }

  private arm(): void {
    this.timer ??= this.context.clock.setTimeout(() => this.flush(), this.backoff.next(), {
      background: true,
    })
  }

  private flush(): void {
    this.timer?.cancel()
    this.timer = null
    for (const item of this.pending) {
      if (!item.inFlight) this.attempt(item)
    }
    if (this.pending.size > 0) this.arm()
  }

  private attempt(item: Item): void {
    item.inFlight = true
    this.send(item.repair).then(
      (answer) => this.tried(item, typeof answer === 'object' ? { commit: answer } : 'done'),
      (error: unknown) =>
        // Anything but "fate unknown" is a final answer about this very entry.
        this.tried(item, error instanceof CoordinationUnavailableError ? null : { failed: asError(error) }),
    )
  }

  /** @param outcome null: its fate is unknown. */
  private tried(item: Item, outcome: RepairEnd | null): void {
    item.inFlight = false
    if (outcome !== null) this.finish(item, outcome)
    if (!item.first) return
    item.first = false
    this.firstTries.delete(item)
    if (!item.ended) {
      this.pending.add(item)
      this.arm()
    }
    const { firstTried } = item
    item.firstTried = null
    firstTried?.()
  }

  private send(repair: Repair): Promise<void | CommitResult> {
    switch (repair.kind) {
      case 'release':
        return this.backend.release(repair)
      case 'withdraw':
        return this.backend.withdraw(repair)
      case 'commit':
        return this.backend.commit(repair)
    }
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
