/**
 * How the store reaches its server (the rules are those of `StoreLink`): the client, the collections and what is asked of
 * them, and errors in words.
 */
import { MongoServerSelectionError, ReadConcern, type MongoClient } from 'mongodb'
import { ConfigError, StoreError, StoreLink, type CallRules, type StoreLinkOptions } from '@botmesh/core'
import { collectionsOf, type Collections } from './documents.js'
import { prepare } from './schema.js'
import type { Target } from './target.js'
import { judge, Overdue, type Verdict } from './verdict.js'

export interface MongoLinkOptions extends StoreLinkOptions {
  target: Target
  prefix: string
}

// The driver repeats every single write once by itself where the server is a replica set, which recognises the copy.
export const IDEMPOTENT: CallRules = { idempotent: true }
export const ONCE: CallRules = { idempotent: false }

/** Changes its client if that one finds no server any more. */
interface Opened {
  client: MongoClient
  collections: Collections
}

/** A call's time, as a multiple of one command's: it may make several, and each looks for a server first. */
const COMMANDS_A_CALL = 6

export class MongoLink extends StoreLink<Opened, MongoLinkOptions> {
  /** What is asked of a client just now. Not whole calls: one that waits for the store to open would wait for itself. */
  private readonly asked = new Set<Promise<unknown>>()
  /** Clients that were replaced and are not closed yet. */
  private readonly leaving = new Set<Promise<void>>()

  run<T>(
    operation: string,
    key: string,
    rules: CallRules,
    work: (collections: Collections) => Promise<T>,
  ): Promise<T> {
    return this.repeated(operation, key, rules, async (opened) => {
      const { client, collections } = opened
      try {
        return await this.followed(work(collections))
      } catch (error) {
        if (error instanceof MongoServerSelectionError || error instanceof Overdue) this.renew(opened, client)
        throw error
      }
    })
  }

  /**
   * A connection that is closed in the moment in which the driver (7.9) writes to it leaves that command without an answer
   * for ever. If it was the monitor's, that client finds no server any more, whatever the server does, and another one
   * would. So whoever finds none, or waits beyond all deadlines, changes the client. (A server that is away is not found by
   * the next one either: nothing is lost.)
   */
  private renew(opened: Opened, failed: MongoClient): void {
    if (!this.options.target.own || opened.client !== failed) return
    opened.client = this.options.target.client()
    opened.collections = this.collectionsOn(opened.client)
    const left = this.closeLate(failed).finally(() => this.leaving.delete(left))
    this.leaving.add(left)
  }

  /** Once what is asked now, of it or another one, is answered: closing would interrupt it. */
  private async closeLate(client: MongoClient): Promise<void> {
    await Promise.allSettled(this.asked)
    try {
      await client.close()
    } catch (error) {
      this.options.logger.debug({ err: error }, 'a client that found no server could not be closed')
    }
  }

  protected get server(): { title: string; place: string } {
    return { title: 'MongoDB', place: this.options.target.place }
  }

  protected judge(error: unknown): Verdict {
    return judge(error)
  }

  protected async connect(): Promise<Opened> {
    const { target, prefix } = this.options
    const client = target.client()
    try {
      const collections = this.collectionsOn(client)
      await prepare(collections, prefix, target.place)
      return { client, collections }
    } catch (error) {
      if (target.own) await client.close().catch(() => undefined)
      throw error
    }
  }

  protected async disconnect({ client }: Opened): Promise<void> {
    if (this.options.target.own) await client.close()
    await Promise.allSettled(this.leaving)
  }

  private async followed<T>(work: Promise<T>): Promise<T> {
    const bounded = this.bounded(work)
    this.asked.add(bounded)
    try {
      return await bounded
    } finally {
      this.asked.delete(bounded)
    }
  }

  /** @throws Overdue if neither the server nor the driver's own deadlines end the call. */
  private async bounded<T>(call: Promise<T>): Promise<T> {
    const { clock, target } = this.options
    let tell: (error: Overdue) => void = () => undefined
    const overdue = new Promise<never>((_, reject) => (tell = reject))
    const limitMs = COMMANDS_A_CALL * target.callTimeoutMs
    const timer = clock.setTimeout(() => tell(new Overdue(limitMs)), limitMs, { background: true })
    try {
      return await Promise.race([call, overdue])
    } finally {
      timer.cancel()
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

  protected failure(operation: string, key: string | undefined, error: unknown): Error {
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
}
