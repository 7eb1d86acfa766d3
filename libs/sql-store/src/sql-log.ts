/**
 * The message log: a row an entry, numbered per channel under the channel's row lock, so that a reader who goes on from
 * an id misses nothing. Subscribers are woken by the database where it can (LISTEN), and by polling besides.
 */
import { sql } from 'kysely'
import { LogListeners, type LogEntry, type MessageLog, type Timer } from '@botmesh/core'
import { escapeName } from './names.js'
import type { CallRules, SqlLink } from './sql-link.js'
import type { Int } from './tables.js'

const KEEP = 200
const TTL_MS = 86_400_000
const PAGE = 100
/** How often channels are looked at, in ms: alone, and beside pushes that may be lost. */
const POLL_MS = 200
const SLOW_POLL_MS = 5000

const ONCE: CallRules = { idempotent: false }
const IDEMPOTENT: CallRules = { idempotent: true }

export class SqlLog implements MessageLog {
  private readonly listeners: LogListeners
  private timer: Timer | null = null
  private looking: Promise<void> | null = null
  /** How to stop listening; null: not listening (any more). */
  private pushes: Promise<(() => Promise<void>) | null> | null = null
  private pushed = false

  constructor(
    private readonly link: SqlLink,
    private readonly topicChannel: string,
  ) {
    this.listeners = new LogListeners(link.options.logger)
  }

  append(channel: string, payload: string, options: { keep?: number; ttlMs?: number } = {}): Promise<string> {
    const { flavor } = this.link.options
    const { keep = KEEP, ttlMs = TTL_MS } = options
    const name = escapeName(channel)
    const until = sql<Int>`${flavor.nowMs} + ${sql.lit(Math.ceil(ttlMs))}`
    return this.link.transact('append', channel, ONCE, async (tx) => {
      const insert = tx.insertInto('channels').values({ name, last: 1, until })
      // In this order: MySQL assigns from left to right.
      const gone = sql<Int>`case when ${sql.ref('channels.until')} <= ${flavor.nowMs} then ${sql.ref('channels.last')} else ${sql.ref('channels.gone')} end`
      const set = { gone, until, last: sql<Int>`${sql.ref('channels.last')} + 1` }
      await (
        flavor.kind === 'mysql'
          ? insert.onDuplicateKeyUpdate(set)
          : insert.onConflict((conflict) => conflict.column('name').doUpdateSet(set))
      ).execute()
      const row = await tx
        .selectFrom('channels')
        .select(['last', 'gone'])
        .where('name', '=', name)
        .executeTakeFirstOrThrow()
      const id = Number(row.last)
      await tx
        .insertInto('log')
        .values({ channel: name, id, payload: JSON.stringify(payload) })
        .execute()
      const before = Math.max(id - keep, Number(row.gone))
      if (before > 0)
        await tx.deleteFrom('log').where('channel', '=', name).where('id', '<=', before).execute()
      if (flavor.notify) await flavor.notify(this.topicChannel, name).execute(tx)
      return String(id)
    })
  }

  read(channel: string, afterId: string | null, limit = PAGE): Promise<LogEntry[]> {
    const { nowMs } = this.link.options.flavor
    return this.link.run('read', channel, IDEMPOTENT, async (db) => {
      const rows = await db
        .selectFrom('log')
        .innerJoin('channels', 'channels.name', 'log.channel')
        .select(['log.id', 'log.payload'])
        .where('log.channel', '=', escapeName(channel))
        .where('channels.until', '>', nowMs)
        .where('log.id', '>', Number(afterId ?? 0))
        .orderBy('log.id')
        .limit(sql.lit(Math.max(0, Math.floor(limit))))
        .execute()
      return rows.map(({ id, payload }) => ({ id: String(id), payload: String(JSON.parse(payload)) }))
    })
  }

  async subscribe(channel: string, onAppend: () => void): Promise<() => Promise<void>> {
    const name = escapeName(channel)
    const last = await this.lastOf([name])
    const end = this.listeners.add(name, last.get(name) ?? 0, onAppend)
    await this.listen()
    this.schedule()
    return async () => {
      if (end()) await this.rest()
    }
  }

  async close(): Promise<void> {
    this.listeners.clear()
    await this.rest()
  }

  private async rest(): Promise<void> {
    this.timer?.cancel()
    this.timer = null
    await this.looking
    const stop = this.pushes
    this.pushes = null
    this.pushed = false
    await (
      await stop
    )?.()
  }

  /** Asks for pushes where the database has them; without them polling is quicker. */
  private async listen(): Promise<void> {
    const { flavor, logger } = this.link.options
    if (!flavor.listen) return
    this.pushes ??= flavor
      .listen(
        this.topicChannel,
        (topic) => void this.look([topic]),
        (error) => {
          logger.warn({ err: error }, 'notifications of the log are lost: it is polled meanwhile')
          this.pushed = false
          this.pushes = null
        },
      )
      .then(
        (stop) => {
          this.pushed = true
          return stop
        },
        (error: unknown) => {
          logger.warn({ err: error }, 'the log cannot be listened to: it is polled')
          this.pushes = null
          return null
        },
      )
    await this.pushes
  }

  private schedule(): void {
    if (this.timer || this.listeners.none) return
    const everyMs = this.pushed ? SLOW_POLL_MS : POLL_MS
    this.timer = this.link.options.clock.setTimeout(() => void this.poll(), everyMs, { background: true })
  }

  private async poll(): Promise<void> {
    await this.listen()
    await this.look(this.listeners.names)
    this.timer = null
    this.schedule()
  }

  /** Tells the listeners of those channels that have new entries. One look at a time. */
  private async look(names: string[]): Promise<void> {
    while (this.looking) await this.looking
    const watched = names.filter((name) => this.listeners.has(name))
    if (watched.length === 0) return
    this.looking = this.compare(watched)
      .catch((error: unknown) => {
        // Said at every look that fails; entries are found by the next one.
        this.link.options.logger.warn({ err: error }, 'the log could not be looked at')
      })
      .finally(() => {
        this.looking = null
      })
    await this.looking
  }

  private async compare(names: string[]): Promise<void> {
    this.listeners.tell(await this.lastOf(names))
  }

  private lastOf(names: string[]): Promise<Map<string, number>> {
    return this.link.run('look', '', IDEMPOTENT, async (db) => {
      const rows = await db
        .selectFrom('channels')
        .select(['name', 'last'])
        .where('name', 'in', names)
        .execute()
      return new Map(rows.map(({ name, last }) => [name, Number(last)]))
    })
  }
}
