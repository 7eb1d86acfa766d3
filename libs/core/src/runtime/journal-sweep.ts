/**
 * Finds chats whose record nobody works on any more, because the replica that had it died, and wakes them here, so
 * that a message is handled although its chat never writes again (D1, scenario 5). Runs every third of a lease on
 * every replica that may send; two replicas that wake the same chat meet at its turn, and the second finds nothing.
 * Chats whose wait has timed out with nobody left to notice are found the same way (ADR 8).
 */
import type { Clock, Timer } from '../contracts/clock.js'
import type { Journal } from '../contracts/journal.js'
import { chatKeyPrefix } from '../kernel/chat-key.js'

export interface JournalSweepOptions {
  journal: Journal
  /** Only chats of this provider: others may share the store. */
  provider: string
  clock: Clock
  everyMs: number
  /** How long a record must have been due, or an appointment over. */
  idleMs: number
  maySend: () => boolean
  wake: (key: string) => void
  report: (error: unknown) => void
}

const MOST_AT_ONCE = 1000

export class JournalSweep {
  private timer: Timer | null = null
  private stopped = false
  private failing = false

  constructor(private readonly options: JournalSweepOptions) {}

  /** Looks at once: what a former run left is due already. */
  start(): void {
    void this.look()
  }

  /** A look under way has no effect any more: whoever stops lets go of the store next, and others look as well. */
  stop(): void {
    this.stopped = true
    this.timer?.cancel()
  }

  /** Looks now, for tests and for a replica that has just become the leader. */
  async look(): Promise<void> {
    this.timer?.cancel()
    await this.sweep()
    if (this.stopped) return
    this.timer?.cancel()
    this.timer = this.options.clock.setTimeout(() => void this.look(), this.options.everyMs, {
      background: true,
    })
  }

  private async sweep(): Promise<void> {
    const { journal, idleMs, provider, maySend, wake, report } = this.options
    if (this.stopped || !maySend()) return
    try {
      const own = chatKeyPrefix(provider)
      const keys = await journal.stranded(idleMs, MOST_AT_ONCE, own)
      if (this.stopped) return
      this.failing = false
      // A custom journal may not look at the prefix.
      for (const key of keys) if (key.startsWith(own)) wake(key)
    } catch (error) {
      if (this.stopped) return
      // Said once per outage: the next look comes by itself.
      if (!this.failing) report(error)
      this.failing = true
    }
  }
}
