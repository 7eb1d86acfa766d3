/** A message log as two replicas would share it, with faults: hints withheld, appends that fail or whose reply is lost. */
import type { LogEntry, MessageLog } from '@botmesh/core'

export class SharedLog implements MessageLog {
  readonly entries = new Map<string, LogEntry[]>()
  hints = true
  failAppends = 0
  loseReplies = 0
  failReads = 0
  /** Called before each read is answered, so that a test can wait for it. */
  onRead: () => void = () => {}
  reads = 0
  private readonly listeners = new Map<string, Set<() => void>>()
  private last = 0

  async append(channel: string, payload: string): Promise<string> {
    if (this.failAppends > 0) {
      this.failAppends -= 1
      throw new Error('the log is down')
    }
    const id = String(++this.last).padStart(8, '0')
    this.of(channel).push({ id, payload })
    if (this.hints) for (const listener of this.listeners.get(channel) ?? []) setImmediate(listener)
    if (this.loseReplies > 0) {
      this.loseReplies -= 1
      throw new Error('the reply of the log was lost')
    }
    return id
  }

  async read(channel: string, afterId: string | null, limit = 100): Promise<LogEntry[]> {
    this.reads += 1
    this.onRead()
    if (this.failReads > 0) {
      this.failReads -= 1
      throw new Error('the log is down')
    }
    return this.of(channel)
      .filter((entry) => afterId === null || entry.id > afterId)
      .slice(0, limit)
  }

  async subscribe(channel: string, onAppend: () => void): Promise<() => Promise<void>> {
    const listeners = this.listeners.get(channel) ?? new Set()
    this.listeners.set(channel, listeners)
    // Doubled on purpose: hints promise nothing.
    const listener = () => (onAppend(), onAppend())
    listeners.add(listener)
    return async () => void listeners.delete(listener)
  }

  get subscriptions(): number {
    return [...this.listeners.values()].reduce((sum, one) => sum + one.size, 0)
  }

  private of(channel: string): LogEntry[] {
    const found = this.entries.get(channel) ?? []
    this.entries.set(channel, found)
    return found
  }
}
