/** The message log in Redis: a stream a channel, and its own name as the pub/sub channel that wakes subscribers. */
import { StoreError, type LogEntry, type MessageLog } from '@botmesh/core'
import { RedisLink } from './redis-link.js'
import type { StoreCalls } from './store-calls.js'

const KEEP = 200
const TTL_MS = 86_400_000

export class RedisLog implements MessageLog {
  private link: RedisLink | null = null
  private readonly listeners = new Map<string, Set<() => void>>()

  constructor(private readonly calls: StoreCalls) {}

  async append(
    channel: string,
    payload: string,
    options: { keep?: number; ttlMs?: number } = {},
  ): Promise<string> {
    const key = this.calls.options.keys.log(channel)
    const { keep = KEEP, ttlMs = TTL_MS } = options
    return (await this.calls.script('log-append', key, [payload, String(keep), String(ttlMs)])) as string
  }

  async read(channel: string, afterId: string | null, limit = 100): Promise<LogEntry[]> {
    const key = this.calls.options.keys.log(channel)
    const from = afterId === null ? '-' : `(${afterId}`
    const entries = await this.calls.command('read', (client) =>
      client.xrange(key, from, '+', 'COUNT', limit),
    )
    return entries.map(([id, fields]) => ({ id, payload: fields[1] ?? '' }))
  }

  async subscribe(channel: string, onAppend: () => void): Promise<() => Promise<void>> {
    const key = this.calls.options.keys.log(channel)
    // One object a call: the same function may subscribe twice.
    const listener = (): void => onAppend()
    const link = await this.connection()
    const known = this.listeners.get(key)
    const listeners = known ?? new Set()
    listeners.add(listener)
    if (!known) {
      this.listeners.set(key, listeners)
      await link.raw.subscribe(key).catch((error: unknown) => {
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
      this.listeners.delete(key)
      // Should the connection be down, nobody is subscribed any more.
      await link.raw.unsubscribe(key).catch(() => undefined)
    }
  }

  close(): void {
    this.link?.close()
    this.link = null
    this.listeners.clear()
  }

  private async connection(): Promise<RedisLink> {
    await this.calls.open()
    const { target, clock, logger, startTimeoutMs } = this.calls.options
    if (!this.link) {
      const link = new RedisLink({
        target,
        role: 'log',
        clock,
        logger,
        onReady: () => this.listenAgain(link),
      })
      this.link = link
      const opened = link.open(startTimeoutMs)
      link.raw.on('message', (key: string) => {
        for (const listener of this.listeners.get(key) ?? []) this.tell(listener)
      })
      await opened
    } else {
      await this.link.open(startTimeoutMs)
    }
    return this.link
  }

  private tell(listener: () => void): void {
    try {
      listener()
    } catch (error) {
      this.calls.options.logger.error({ err: error }, 'a subscriber of the log threw')
    }
  }

  /** After a cut: subscribes anew, and lets everybody look for what came in between. */
  private listenAgain(link: RedisLink): void {
    const keys = [...this.listeners.keys()]
    if (keys.length === 0) return
    link.raw.subscribe(...keys).then(
      () => this.listeners.forEach((listeners) => listeners.forEach((listener) => this.tell(listener))),
      (error: unknown) =>
        this.calls.options.logger.warn({ err: error }, 'the log cannot be listened to: poll it'),
    )
  }
}
