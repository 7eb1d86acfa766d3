/**
 * How a store reaches its database (the rules are those of `StoreLink`): migrated when opened, statements and
 * transactions, and errors in words.
 */
import { CompiledQuery, Kysely, type Transaction } from 'kysely'
import { ConfigError, StoreError, StoreLink, type CallRules, type StoreLinkOptions } from '@botmesh/core'
import type { SequenceQuery, SqlFlavor, Verdict } from './flavor.js'
import { migrate } from './migrations.js'
import { PrefixPlugin, type Tables } from './tables.js'

export type { CallRules } from '@botmesh/core'

export interface SqlLinkOptions extends StoreLinkOptions {
  flavor: SqlFlavor
  prefix: string
}

export type Session = Kysely<Tables>

export class SqlLink extends StoreLink<Session, SqlLinkOptions> {
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

  protected get server(): { title: string; place: string } {
    return this.options.flavor
  }

  protected judge(error: unknown): Verdict {
    return this.options.flavor.judge(error)
  }

  protected async connect(): Promise<Session> {
    const { flavor, prefix } = this.options
    const db = new Kysely<Tables>({ dialect: flavor.dialect(), plugins: [new PrefixPlugin(prefix)] })
    try {
      await migrate(db, flavor, prefix)
      await flavor.check?.(db)
      return db
    } catch (error) {
      await db.destroy().catch(() => undefined)
      throw error
    }
  }

  protected disconnect(db: Session): Promise<void> {
    return db.destroy()
  }

  protected failure(operation: string, key: string | undefined, error: unknown): Error {
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
}
