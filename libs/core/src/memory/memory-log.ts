/**
 * The shared message log in memory: every coordinator's process is this one, so a subscription is a callback. Ids
 * begin at the time of day, so that a client which comes back after a restart, with an id of the former process, reads
 * on from there and not from beyond everything.
 */
import type { Clock } from '../contracts/clock.js'
import type { LogEntry, MessageLog } from '../contracts/message-log.js'
import { attempt } from './memory-locks.js'

const KEEP = 200
const TTL_MS = 24 * 60 * 60_000
const PAGE = 100
/** Channels are swept when their number has doubled since the last sweep: no timer. */
const FIRST_SWEEP = 256

interface Channel {
  entries: LogEntry[]
  expiresAt: number
}

export class MemoryLog implements MessageLog {
  private readonly channels = new Map<string, Channel>()
  private readonly listeners = new Map<string, Set<() => void>>()
  private sequence: number
  private sweepAt = FIRST_SWEEP

  constructor(private readonly clock: Clock) {
    this.sequence = Math.floor(clock.now() * 1000)
  }

  append(name: string, payload: string, options: { keep?: number; ttlMs?: number } = {}): Promise<string> {
    return attempt(() => {
      const channel = this.alive(name) ?? this.make(name)
      this.sequence += 1
      const id = this.sequence.toString().padStart(17, '0')
      channel.entries.push({ id, payload })
      channel.entries.splice(0, channel.entries.length - (options.keep ?? KEEP))
      channel.expiresAt = this.clock.now() + (options.ttlMs ?? TTL_MS)
      for (const listener of this.listeners.get(name) ?? []) queueMicrotask(listener)
      return id
    })
  }

  read(name: string, afterId: string | null, limit = PAGE): Promise<LogEntry[]> {
    return attempt(() => {
      const entries = this.alive(name)?.entries ?? []
      const after = afterId === null ? entries : entries.filter((entry) => entry.id > afterId)
      return after.slice(0, limit).map((entry) => ({ ...entry }))
    })
  }

  subscribe(name: string, onAppend: () => void): Promise<() => Promise<void>> {
    return attempt(() => {
      // A wrapper of its own: one function may be subscribed twice.
      const listener = (): void => onAppend()
      const listeners = this.listeners.get(name) ?? new Set()
      this.listeners.set(name, listeners.add(listener))
      return () =>
        attempt(() => {
          listeners.delete(listener)
          if (listeners.size === 0 && this.listeners.get(name) === listeners) this.listeners.delete(name)
        })
    })
  }

  private alive(name: string): Channel | undefined {
    const channel = this.channels.get(name)
    if (channel && channel.expiresAt > this.clock.now()) return channel
    this.channels.delete(name)
    return undefined
  }

  private make(name: string): Channel {
    if (this.channels.size >= this.sweepAt) {
      for (const old of [...this.channels.keys()]) this.alive(old)
      this.sweepAt = Math.max(FIRST_SWEEP, this.channels.size * 2)
    }
    const channel = { entries: [], expiresAt: 0 }
    this.channels.set(name, channel)
    return channel
  }
}
