/**
 * Kysely on a SQLite file through libSQL's binding, which ships its binary. One connection a store; calls are
 * synchronous and short. A file that another process (or another store of this one) is writing to is waited for
 * without blocking the event loop: whoever blocked it here might be the one that is waited for.
 */
import {
  CompiledQuery,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
} from 'kysely'
import Database from 'libsql'
import type { Clock, Random } from '@botmesh/core'
import type { SequenceQuery } from '@botmesh/sql-store'

export interface SqliteFileOptions {
  path: string
  busyTimeoutMs: number
  synchronous: 'full' | 'normal'
  clock: Clock
  random: Random
}

type Statement = Database.Statement

const MOST_STATEMENTS = 200

export function sqliteDialect(options: SqliteFileOptions): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new SqliteFileDriver(options),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

/** SQLite's primary result codes that mean something to a store: https://sqlite.org/rescode.html */
export const SQLITE = { PERM: 3, BUSY: 5, LOCKED: 6, READONLY: 8, CANTOPEN: 14, NOTADB: 26 } as const

/**
 * The primary result code of an error of SQLite's. Taken from the number: of the extended codes, the binding names some
 * only (`UNKNOWN_SQLITE_ERROR_1544` is a kind of READONLY).
 */
export function primaryCodeOf(error: unknown): number | undefined {
  const { rawCode } = (error ?? {}) as { rawCode?: unknown }
  return typeof rawCode === 'number' ? rawCode & 0xff : undefined
}

/** True if somebody else is writing: nothing was changed, and the same call may succeed later. */
export function isBusy(error: unknown): boolean {
  const code = primaryCodeOf(error)
  return code === SQLITE.BUSY || code === SQLITE.LOCKED
}

class SqliteFileDriver implements Driver {
  private connection: SqliteConnection | null = null
  private queue: Promise<void> = Promise.resolve()
  private unlock: () => void = () => undefined

  constructor(private readonly options: SqliteFileOptions) {}

  async init(): Promise<void> {
    const db = new Database(this.options.path)
    this.connection = new SqliteConnection(db, this.options)
    const { synchronous } = this.options
    await this.connection.patiently(() => db.exec('pragma journal_mode = wal'))
    await this.connection.patiently(() => db.exec(`pragma synchronous = ${synchronous}`))
  }

  /** One user at a time, in order of asking. */
  async acquireConnection(): Promise<DatabaseConnection> {
    const before = this.queue
    let unlock = (): void => undefined
    this.queue = new Promise((resolve) => (unlock = resolve))
    await before
    this.unlock = unlock
    if (!this.connection) throw new Error('The SQLite file is closed.')
    return this.connection
  }

  /** Immediate: a transaction that begins by reading could not become a writing one while somebody else writes. */
  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'))
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'))
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('rollback'))
  }

  async releaseConnection(): Promise<void> {
    this.unlock()
  }

  async destroy(): Promise<void> {
    await this.queue
    this.connection?.close()
    this.connection = null
  }
}

class SqliteConnection implements DatabaseConnection {
  private readonly statements = new Map<string, Statement>()

  constructor(
    private readonly db: Database.Database,
    private readonly options: SqliteFileOptions,
  ) {}

  executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const { sequence } = query as Partial<SequenceQuery>
    return this.patiently(() => (sequence ? this.inSequence<R>(sequence) : this.execute<R>(query)))
  }

  private execute<R>({ sql, parameters }: CompiledQuery): QueryResult<R> {
    const statement = this.prepare(sql)
    if (statement.reader) return { rows: statement.all(parameters) as R[] }
    const { changes } = statement.run(parameters)
    return { rows: [], numAffectedRows: BigInt(changes) }
  }

  /** One transaction, without giving the thread away in between. */
  private inSequence<R>(parts: readonly CompiledQuery[]): QueryResult<R> {
    this.prepare('begin immediate').run()
    try {
      const [first, ...others] = parts
      const result = this.execute<R>(first as CompiledQuery)
      if (result.rows.length > 0) for (const part of others) this.execute(part)
      this.prepare('commit').run()
      return result
    } catch (error) {
      // Some errors have ended the transaction already.
      if (this.db.inTransaction) this.prepare('rollback').run()
      throw error
    }
  }

  // eslint-disable-next-line require-yield -- the interface asks for it, and nothing here streams
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('Streaming is not supported.')
  }

  close(): void {
    this.statements.clear()
    this.db.close()
  }

  /** Waits for other writers, up to `busyTimeoutMs`. */
  async patiently<T>(work: () => T): Promise<T> {
    const { clock, random, busyTimeoutMs } = this.options
    const deadline = clock.monotonic() + busyTimeoutMs
    for (let tries = 0; ; tries += 1) {
      try {
        return work()
      } catch (error) {
        if (!isBusy(error) || clock.monotonic() >= deadline) throw error
        const ms = (0.5 + random.next()) * Math.min(20, 1 + tries)
        await new Promise<void>((resolve) => void clock.setTimeout(resolve, ms))
      }
    }
  }

  private prepare(text: string): Statement {
    const known = this.statements.get(text)
    if (known) return known
    const made = this.db.prepare(text)
    // Statements with lists have many forms: the memory of them is bounded.
    if (this.statements.size >= MOST_STATEMENTS) this.statements.clear()
    this.statements.set(text, made)
    return made
  }
}
