/**
 * The message log: a document a channel, with its newest entries in it, so that a reader who goes on from an id misses
 * nothing. Subscribers are woken by polling: change streams would need a replica set.
 */
import { LogListeners, type LogEntry, type MessageLog, type Timer } from '@botmesh/core'
import { NOW, after, either, listOf, lit, newest, only } from './expressions.js'
import { IDEMPOTENT, ONCE, type MongoLink } from './mongo-link.js'
import { escapeName } from './names.js'
import { isDuplicateKey } from './verdict.js'

const KEEP = 200
const TTL_MS = 86_400_000
const PAGE = 100
/** How often subscribed channels are looked at, all in one call. */
const POLL_MS = 200

export class MongoLog implements MessageLog {
  private readonly listeners: LogListeners
  private timer: Timer | null = null
  private looking: Promise<void> | null = null
  /** The last look failed. */
  private blind = false

  constructor(private readonly link: MongoLink) {
    this.listeners = new LogListeners(link.options.logger)
  }

  append(channel: string, payload: string, options: { keep?: number; ttlMs?: number } = {}): Promise<string> {
    const { keep = KEEP, ttlMs = TTL_MS } = options
    const _id = escapeName(channel)
    const gone = { $lte: [{ $ifNull: ['$until', 0] }, NOW] }
    const before = either(gone, lit([]), listOf('entries'))
    const stages = [
      // From the clock: a channel that was removed and made anew does not use its numbers again.
      { $set: { last: { $max: [{ $add: [{ $ifNull: ['$last', 0] }, 1] }, NOW] } } },
      {
        $set: {
          entries: newest(
            { $concatArrays: [before, [{ n: '$last', payload: lit(JSON.stringify(payload)) }]] },
            Math.max(1, Math.floor(keep)),
          ),
          until: after(ttlMs),
          expireAt: { $add: ['$$NOW', Math.ceil(ttlMs)] },
        },
      },
    ]
    return this.link.run('append', channel, ONCE, async ({ channels }) => {
      const how = { upsert: true, returnDocument: 'after', projection: { last: 1 } } as const
      const write = () => channels.findOneAndUpdate({ _id }, stages, how)
      const document = await write().catch((error: unknown) => {
        // Somebody made the channel just now.
        if (isDuplicateKey(error)) return write()
        throw error
      })
      return String(document?.last)
    })
  }

  read(channel: string, afterId: string | null, limit = PAGE): Promise<LogEntry[]> {
    const most = Math.max(0, Math.floor(limit))
    if (most === 0) return Promise.resolve([])
    return this.link.run('read', channel, IDEMPOTENT, async ({ channels }) => {
      const later = only(listOf('entries'), { $gt: ['$$one.n', Number(afterId ?? 0)] })
      const [found] = await channels
        .aggregate<{ entries: { n: number; payload: string }[] }>([
          { $match: { _id: escapeName(channel), $expr: { $gt: ['$until', NOW] } } },
          { $project: { entries: { $slice: [later, most] } } },
        ])
        .toArray()
      return (found?.entries ?? []).map(({ n, payload }) => ({
        ...{ id: String(n), payload: String(JSON.parse(payload)) },
      }))
    })
  }

  async subscribe(channel: string, onAppend: () => void): Promise<() => Promise<void>> {
    const name = escapeName(channel)
    const last = await this.lastOf([name])
    const end = this.listeners.add(name, last.get(name) ?? 0, onAppend)
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
  }

  private schedule(): void {
    // A look under way plans the next one when it is over.
    if (this.timer || this.looking || this.listeners.none) return
    this.timer = this.link.options.clock.setTimeout(() => this.look(), POLL_MS, { background: true })
  }

  private look(): void {
    this.timer = null
    this.looking = this.compare()
      .then(
        () => {
          this.blind = false
        },
        (error: unknown) => {
          // Said once an outage; entries are found by the next look that succeeds.
          if (!this.blind) this.link.options.logger.warn({ err: error }, 'the log could not be looked at')
          this.blind = true
        },
      )
      .finally(() => {
        this.looking = null
        this.schedule()
      })
  }

  private async compare(): Promise<void> {
    this.listeners.tell(await this.lastOf(this.listeners.names))
  }

  private lastOf(names: string[]): Promise<Map<string, number>> {
    return this.link.run('look', '', IDEMPOTENT, async ({ channels }) => {
      const found = await channels.find({ _id: { $in: names } }, { projection: { last: 1 } }).toArray()
      return new Map(found.map(({ _id, last }) => [_id, last]))
    })
  }
}
