/** The message log in Redis: a stream a channel, and its own name as the pub/sub channel that wakes subscribers. */
import { StoreError, type LogEntry, type MessageLog } from '@botmesh/core'
import type { Line } from './line.js'
import type { StoreCalls } from './store-calls.js'
import type { StoreShards } from './store-shards.js'

const KEEP = 200
const TTL_MS = 86_400_000

export class RedisLog implements MessageLog {
  /** One a shard. */
  private readonly links = new Map<StoreCalls, Line>()
  /** By shard and key. */
  private readonly listeners = new Map<StoreCalls, Map<string, Set<() => void>>>()

  constructor(private readonly calls: StoreShards) {}

  async append(
    channel: string,
    payload: string,
    options: { keep?: number; ttlMs?: number } = {},
  ): Promise<string> {
    const calls = this.calls.of(channel)
    const key = calls.options.keys.log(channel)
    const { keep = KEEP, ttlMs = TTL_MS } = options
    return (await calls.script('log-append', key, [payload, String(keep), String(ttlMs)])) as string
  }

  async read(channel: string, afterId: string | null, limit = 100): Promise<LogEntry[]> {
    const calls = this.calls.of(channel)
    const from = afterId === null ? '-' : `(${afterId}`
    const args = [calls.options.keys.log(channel), from, '+', 'COUNT', String(limit)]
    const entries = await calls.command<[string, string[]][]>('read', 'xrange', args)
    return entries.map(([id, fields]) => ({ id, payload: fields[1] ?? '' }))
  }

  async subscribe(channel: string, onAppend: () => void): Promise<() => Promise<void>> {
    const calls = this.calls.of(channel)
    const key = calls.options.keys.log(channel)
    // One object a call: the same function may subscribe twice.
    const listener = (): void => onAppend()
    const link = await this.connection(calls)
    const ofShard = this.listenersOf(calls)
    const known = ofShard.get(key)
    const listeners = known ?? new Set()
    listeners.add(listener)
    if (!known) {
      ofShard.set(key, listeners)
      await link.subscribe([key]).catch((error: unknown) => {
        const text = `Redis did not accept a subscription to the log "${channel}".`
        throw new StoreError(
          text,
          { store: 'redis', operation: 'subscribe' },
          { cause: error, retryable: true },
        )
      })
    }
    return async () => {
      if (!listeners.delete(listener) || listeners.size > 0) return
      ofShard.delete(key)
      // Should the connection be down, nobody is subscribed any more.
      await link.unsubscribe(key).catch(() => undefined)
    }
  }

  close(): void {
    for (const link of this.links.values()) link.close()
    this.links.clear()
    this.listeners.clear()
  }

  private listenersOf(calls: StoreCalls): Map<string, Set<() => void>> {
    const known = this.listeners.get(calls) ?? new Map<string, Set<() => void>>()
    this.listeners.set(calls, known)
    return known
  }

  private async connection(calls: StoreCalls): Promise<Line> {
    await calls.open()
    let link = this.links.get(calls)
    if (!link) {
      const listeners = this.listenersOf(calls)
      const made = calls.line('log', {
        onReady: () => this.listenAgain(made, calls),
        onMessage: (key) => {
          for (const listener of listeners.get(key) ?? []) this.tell(listener)
        },
      })
      this.links.set(calls, made)
      link = made
    }
    await link.open(calls.options.startTimeoutMs)
    return link
  }

  private tell(listener: () => void): void {
    try {
      listener()
    } catch (error) {
      this.calls.options.logger.error({ err: error }, 'a subscriber of the log threw')
    }
  }

  /** After a cut: subscribes anew, and lets everybody look for what came in between. */
  private listenAgain(link: Line, calls: StoreCalls): void {
    const listeners = this.listenersOf(calls)
    const keys = [...listeners.keys()]
    if (keys.length === 0) return
    link.subscribe(keys).then(
      () => listeners.forEach((ones) => ones.forEach((listener) => this.tell(listener))),
      (error: unknown) =>
        this.calls.options.logger.warn({ err: error }, 'the log cannot be listened to: poll it'),
    )
  }
}
