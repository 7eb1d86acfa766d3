/**
 * How the store reaches its server: opened when first needed, and every call with the same rules: what met a conflict is
 * made again; a lost connection is tried once more where a copy of the call changes nothing; all else becomes a typed
 * error without secrets.
 */
import { ReadConcern, type MongoClient } from 'mongodb'
import { ConfigError, StoreError, type Clock, type Logger, type Random } from '@botmesh/core'
import { collectionsOf, type Collections } from './documents.js'
import { prepare } from './schema.js'
import type { Target } from './target.js'
import { judge } from './verdict.js'

export interface MongoLinkOptions {
  target: Target
  prefix: string
  startTimeoutMs: number
  clock: Clock
  random: Random
  logger: Logger
}

export interface CallRules {
  /**
   * A copy of the call changes nothing and answers the same: it is made again when the connection was lost. The driver
   * repeats every single write once by itself where the server is a replica set, which recognises the copy.
   */
  idempotent: boolean
}

export const IDEMPOTENT: CallRules = { idempotent: true }
export const ONCE: CallRules = { idempotent: false }

interface Opened {
  client: MongoClient
  collections: Collections
}

const CONFLICT_MS = 10_000
/** How often a call is made again over a new connection, and until when: not after a deadline of its own. */
const LOST_TRIES = 3
const LOST_MS = 2000
const OPEN_PAUSE_MS = 100

export class MongoLink {
  private opened: Opened | null = null
  private opening: Promise<Opened> | null = null
  private closing: Promise<void> | null = null
  private readonly underWay = new Set<Promise<unknown>>()

  constructor(readonly options: MongoLinkOptions) {}

  /** Idempotent. @throws ConfigError at once for what can never work, StoreError after `startTimeoutMs`. */
  async open(): Promise<void> {
    await this.session()
  }

  /** Waits for the calls under way. Idempotent; a later call opens again. */
  async close(): Promise<void> {
    // Whoever opened is told of a failure; here it only matters that it is over.
    await this.opening?.catch(() => undefined)
    const { opened } = this
    this.opened = null
    if (opened) this.closing = this.end(opened)
    await this.closing
  }

  private async end({ client }: Opened): Promise<void> {
    // The driver would interrupt them. Each has its own deadline, and whoever made it is told what became of it.
    await Promise.allSettled(this.underWay)
    if (this.options.target.own) await client.close()
  }

  async run<T>(
    operation: string,
    key: string,
    { idempotent }: CallRules,
    work: (collections: Collections) => Promise<T>,
  ): Promise<T> {
    const { random, clock } = this.options
    const opened = this.opened ?? (await this.session())
    const began = clock.monotonic()
    let lost = 0
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.followed(work(opened.collections))
      } catch (error) {
        const { sort } = judge(error)
        if (sort === 'lost') lost += 1
        const tookMs = clock.monotonic() - began
        const again =
          (sort === 'again' && tookMs < CONFLICT_MS) ||
          (sort === 'lost' && idempotent && lost < LOST_TRIES && tookMs < LOST_MS)
        if (!again || opened !== this.opened) throw this.failure(operation, key, error)
        // Not all at once: they met each other just now.
        await this.pause(random.next() * Math.min(50, 2 ** Math.min(tries, 10)))
      }
    }
  }

  private async followed<T>(call: Promise<T>): Promise<T> {
    this.underWay.add(call)
    try {
      return await call
    } finally {
      this.underWay.delete(call)
    }
  }

  private async session(): Promise<Opened> {
    if (this.opened) return this.opened
    this.opening ??= this.openOnce().finally(() => {
      this.opening = null
    })
    return this.opening
  }

  private async openOnce(): Promise<Opened> {
    await this.closing
    const { clock, startTimeoutMs, target, prefix, logger } = this.options
    const deadline = clock.monotonic() + startTimeoutMs
    for (let told = false; ; told = true) {
      const client = target.client()
      try {
        const collections = this.collectionsOn(client)
        await prepare(collections, prefix, target.place)
        this.opened = { client, collections }
        return this.opened
      } catch (error) {
        if (target.own) await client.close().catch(() => undefined)
        const { sort } = judge(error)
        const worthIt = sort === 'lost' || sort === 'again'
        if (!worthIt || clock.monotonic() + OPEN_PAUSE_MS > deadline) {
          throw this.failure('open', undefined, error)
        }
        if (!told) logger.warn({ err: error, place: target.place }, 'MongoDB cannot be reached yet')
        await this.pause(OPEN_PAUSE_MS)
      }
    }
  }

  /**
   * What was answered is on a majority of the replica set, and reads see nothing that could be rolled back. The options
   * are ours whatever those of a given client are.
   */
  private collectionsOn(client: MongoClient): Collections {
    const { target, prefix } = this.options
    const db = client.db(target.database, {
      writeConcern: { w: 'majority', wtimeoutMS: target.callTimeoutMs },
      readConcern: new ReadConcern('majority'),
      readPreference: 'primary',
      promoteValues: true,
      promoteLongs: true,
      useBigInt64: false,
      ignoreUndefined: true,
    })
    return collectionsOf(db, prefix)
  }

  /** What a store's methods throw. */
  private failure(operation: string, key: string | undefined, error: unknown): Error {
    if (error instanceof ConfigError || error instanceof StoreError) return error
    const { place } = this.options.target
    const verdict = judge(error)
    if (verdict.sort === 'refused') {
      return new ConfigError(`MongoDB at ${place}: ${verdict.text}`, { option: verdict.option }, error)
    }
    const details = { store: 'mongo', operation, ...(key === undefined ? {} : { key }) }
    const of = key ? ` of "${key}"` : ''
    const message = error instanceof Error ? error.message : String(error)
    const text = {
      lost: `MongoDB at ${place} did not answer "${operation}": check that it runs and can be reached.`,
      again: `MongoDB met conflicts in "${operation}" again and again: too many write to the same document.`,
      'too large': `"${operation}"${of} is refused: what MongoDB keeps in one document may not exceed 16 MB.`,
      other: `MongoDB could not do "${operation}": ${message}`,
    }[verdict.sort]
    const retryable = verdict.sort === 'lost' || verdict.sort === 'again'
    return new StoreError(text, details, { cause: error, retryable })
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.options.clock.setTimeout(resolve, ms))
  }
}
