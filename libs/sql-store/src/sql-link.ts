/**
 * How a store reaches its database: opened when first needed, migrated, and every call with the same rules: what the
 * database rolled back (deadlock, serialisation, a busy file) is run again; a lost connection is tried once more where
 * a copy of the call changes nothing; all else becomes a typed error without secrets.
 */
import { CompiledQuery, Kysely, type Transaction } from 'kysely'
import { ConfigError, StoreError, type Clock, type Logger, type Random } from '@botmesh/core'
import type { SequenceQuery, SqlFlavor } from './flavor.js'
import { migrate } from './migrations.js'
import { PrefixPlugin, type Tables } from './tables.js'

export interface SqlLinkOptions {
  flavor: SqlFlavor
  prefix: string
  startTimeoutMs: number
  clock: Clock
  random: Random
  logger: Logger
}

export interface CallRules {
  /** A copy of the call changes nothing and answers the same: it is made again when the connection was lost. */
  idempotent: boolean
}

export type Session = Kysely<Tables>

/** How long a transaction that the database rolls back is run again. */
const ROLLED_BACK_MS = 10_000
/** How often a call is made again over a new connection, and until when: not after a deadline of its own. */
const LOST_TRIES = 3
const LOST_MS = 2000
const OPEN_PAUSE_MS = 100

export class SqlLink {
  private db: Session | null = null
  private opening: Promise<Session> | null = null
  private closing: Promise<void> | null = null

  constructor(readonly options: SqlLinkOptions) {}

  /** Idempotent. @throws ConfigError at once for what can never work, StoreError after `startTimeoutMs`. */
  async open(): Promise<void> {
    await this.session()
  }

  /** Waits for the calls in flight. Idempotent; a later call opens again. */
  async close(): Promise<void> {
    const { opening } = this
    // Whoever opened is told of a failure; here it only matters that it is over.
    await opening?.catch(() => undefined)
    const { db } = this
    this.db = null
    if (db) this.closing = db.destroy()
    await this.closing
  }

  /** Runs statements, each of them a transaction of its own. */
  run<T>(operation: string, key: string, rules: CallRules, work: (db: Session) => Promise<T>): Promise<T> {
    return this.repeated(operation, key, rules, work)
  }

  /** Runs `work` in one READ COMMITTED transaction; from its start when the database rolled it back. */
  transact<T>(
    operation: string,
    key: string,
    rules: CallRules,
    work: (tx: Transaction<Tables>) => Promise<T>,
  ): Promise<T> {
    const { isolate } = this.options.flavor
    return this.repeated(operation, key, rules, (db) => {
      const transaction = db.transaction()
      return (isolate ? transaction.setIsolationLevel('read committed') : transaction).execute(work)
    })
  }

  /**
   * Runs a commit's parts (`commit-unit.ts`) as one.
   * @returns the row of its result; undefined if its first part has written nothing, and so none has.
   */
  async unit(db: Session, parts: readonly CompiledQuery[]): Promise<unknown> {
    const { unit } = this.options.flavor
    if (unit === 'packet') {
      return db.connection().execute(async (connection) => {
        try {
          const { rows } = await connection.executeQuery(parts[0] as CompiledQuery)
          // The last answer but one: what comes after it is the end of the transaction.
          return (rows.at(-2) as unknown[])[0]
        } catch (error) {
          // The connection is lost, or its transaction is still open; whatever this says, the first error counts.
          await connection.executeQuery(CompiledQuery.raw('rollback')).catch(() => undefined)
          throw error
        }
      })
    }
    const query = parts[0] as CompiledQuery
    const sequence: SequenceQuery | CompiledQuery =
      unit === 'sequence' ? { ...query, sequence: parts } : query
    return (await db.executeQuery(sequence)).rows[0]
  }

  private async repeated<T>(
    operation: string,
    key: string,
    { idempotent }: CallRules,
    work: (db: Session) => Promise<T>,
  ): Promise<T> {
    const { flavor, random, clock } = this.options
    const db = this.db ?? (await this.session())
    const began = clock.monotonic()
    let lost = 0
    for (let tries = 1; ; tries += 1) {
      try {
        return await work(db)
      } catch (error) {
        const { sort } = flavor.judge(error)
        if (sort === 'lost') lost += 1
        const tookMs = clock.monotonic() - began
        const again =
          (sort === 'again' && tookMs < ROLLED_BACK_MS) ||
          (sort === 'lost' && idempotent && lost < LOST_TRIES && tookMs < LOST_MS)
        if (!again || db !== this.db) throw this.failure(operation, key, error)
        // Not all at once: they met each other just now.
        await this.pause(random.next() * Math.min(50, 2 ** Math.min(tries, 10)))
      }
    }
  }

  private async session(): Promise<Session> {
    if (this.db) return this.db
    this.opening ??= this.openOnce().finally(() => {
      this.opening = null
    })
    return this.opening
  }

  private async openOnce(): Promise<Session> {
    await this.closing
    const { clock, startTimeoutMs, flavor, prefix, logger } = this.options
    const deadline = clock.monotonic() + startTimeoutMs
    for (let told = false; ; told = true) {
      const db = new Kysely<Tables>({ dialect: flavor.dialect(), plugins: [new PrefixPlugin(prefix)] })
      try {
        await migrate(db, flavor, prefix)
        await flavor.check?.(db)
        this.db = db
        return db
      } catch (error) {
        await db.destroy().catch(() => undefined)
        const { sort } = flavor.judge(error)
        const worthIt = sort === 'lost' || sort === 'again'
        if (!worthIt || clock.monotonic() + OPEN_PAUSE_MS > deadline) {
          throw this.failure('open', undefined, error)
        }
        if (!told) logger.warn({ err: error, place: flavor.place }, `${flavor.title} cannot be reached yet`)
        await this.pause(OPEN_PAUSE_MS)
      }
    }
  }

  /** What a store's methods throw. */
  private failure(operation: string, key: string | undefined, error: unknown): Error {
    if (error instanceof ConfigError || error instanceof StoreError) return error
    const { flavor } = this.options
    const verdict = flavor.judge(error)
    if (verdict.sort === 'refused') {
      return new ConfigError(
        `${flavor.title} at ${flavor.place}: ${verdict.text}`,
        { option: verdict.option },
        error,
      )
    }
    const details = { store: flavor.kind, operation, ...(key === undefined ? {} : { key }) }
    const retryable = verdict.sort !== 'other'
    const text =
      verdict.sort === 'lost'
        ? `${flavor.title} at ${flavor.place} did not answer "${operation}": check that it runs and can be reached.`
        : verdict.sort === 'again'
          ? `${flavor.title} rolled "${operation}" back again and again: too many write to the same rows.`
          : `${flavor.title} could not do "${operation}": ${error instanceof Error ? error.message : String(error)}`
    return new StoreError(text, details, { cause: error, retryable })
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.options.clock.setTimeout(resolve, ms))
  }
}
