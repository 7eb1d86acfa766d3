/**
 * The log of a web chat that runs without a shared store: this process only. Ids start from the time of day, so
 * that a page that comes back after a restart with an id of the former process still reads on from there.
 */
import type { Clock, LogEntry, MessageLog } from '@botmesh/core'

interface Channel {
  entries: LogEntry[]
  listeners: Set<() => void>
  /** Monotonic time after which the channel may be forgotten. */
  expiresMs: number
}

/** Channels are swept when their number has doubled since the last sweep: no timer. */
const FIRST_SWEEP = 256

export class MemoryMessageLog implements MessageLog {
  private readonly channels = new Map<string, Channel>()
  private nextId: number
  private sweepAt = FIRST_SWEEP

  constructor(private readonly clock: Clock) {
    this.nextId = clock.now() * 1000
  }

  async append(
    channel: string,
    payload: string,
    options: { keep?: number; ttlMs?: number } = {},
  ): Promise<string> {
    const { keep = 200, ttlMs = 86_400_000 } = options
    const found = this.channel(channel)
    const id = String(this.nextId++).padStart(17, '0')
    found.entries.push({ id, payload })
    if (found.entries.length > keep) found.entries.splice(0, found.entries.length - keep)
    found.expiresMs = this.clock.monotonic() + ttlMs
    for (const listener of found.listeners) queueMicrotask(listener)
    return id
  }

  async read(channel: string, afterId: string | null, limit = 100): Promise<LogEntry[]> {
    const found = this.channels.get(channel)
    if (found === undefined) return []
    if (found.expiresMs <= this.clock.monotonic()) found.entries = []
    return found.entries.filter((entry) => afterId === null || entry.id > afterId).slice(0, limit)
  }

  async subscribe(channel: string, onAppend: () => void): Promise<() => Promise<void>> {
    const found = this.channel(channel)
    const listener = () => onAppend()
    found.listeners.add(listener)
    return async () => {
      found.listeners.delete(listener)
    }
  }

  private channel(name: string): Channel {
    let found = this.channels.get(name)
    if (found === undefined) {
      if (this.channels.size >= this.sweepAt) this.sweep()
      found = { entries: [], listeners: new Set(), expiresMs: this.clock.monotonic() + 86_400_000 }
      this.channels.set(name, found)
    }
    return found
  }

  private sweep(): void {
    const now = this.clock.monotonic()
    for (const [name, channel] of this.channels) {
      if (channel.listeners.size === 0 && channel.expiresMs <= now) this.channels.delete(name)
    }
    this.sweepAt = Math.max(FIRST_SWEEP, this.channels.size * 2)
  }
}
