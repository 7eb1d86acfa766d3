/**
 * What differs between the databases: one object of this shape per package. Everything else of the SQL stores is
 * shared and speaks through Kysely.
 */
import type { CompiledQuery, Dialect, Kysely, RawBuilder } from 'kysely'
import type { Int, Tables } from './tables.js'

/** What an error of a driver means for a caller. */
export type Verdict =
  /** Can never work as it is configured: a `ConfigError`. `text` carries no secret. */
  | { sort: 'refused'; option: string; text: string }
  /** Nothing was stored; the same transaction may succeed at once (40001, 40P01, 1213, a busy file). */
  | { sort: 'again' }
  /** The connection was lost or never there: the fate of the call is unknown. */
  | { sort: 'lost' }
  | { sort: 'other' }

/** Column types, as the database spells them. */
export interface ColumnTypes {
  /** Escaped names: ASCII, compared byte by byte, may be part of a primary key. */
  name: string
  /** Unicode without a limit that matters. */
  text: string
  /** 64 bits. */
  integer: string
  /** A primary key that counts by itself. */
  serial: string
}

/**
 * How the parts of a commit travel together (`commit-unit.ts`):
 * - `statement`: PostgreSQL takes them as one, the others hanging on what the first returns.
 * - `packet`: MySQL takes them as one text, in a transaction; a variable says whether the commit is allowed.
 * - `sequence`: the driver runs them one after the other, and stops where the first has written nothing.
 */
export type UnitForm = 'statement' | 'packet' | 'sequence'

/** A `CompiledQuery` that carries the parts of a sequence. */
export interface SequenceQuery extends CompiledQuery {
  /** The first changes a row and returns it, else nothing happens; its rows are the result. */
  readonly sequence: readonly CompiledQuery[]
}

export interface SqlFlavor {
  /** `Store.kind`. */
  readonly kind: 'postgres' | 'mysql' | 'sqlite'
  /** As a person calls it. */
  readonly title: string
  /** False: files of one machine (S1). */
  readonly shared: boolean
  /** Where the data is, for messages: never with user or password. */
  readonly place: string
  readonly types: ColumnTypes
  /** After the closing bracket of `create table`. */
  readonly tableSuffix: string
  /** `insert … on conflict … where … returning`; without it two statements do the same. */
  readonly upserts: boolean
  /** How a commit travels in one trip; absent: it takes several. */
  readonly unit?: UnitForm | undefined
  /** `select … for update` locks the row; without it a transaction has locked the whole database. */
  readonly rowLocks: boolean
  /** Set `READ COMMITTED` for each transaction, since the connections are not ours. */
  readonly isolate: boolean
  /** Milliseconds since the epoch by the database's clock, at the moment of the statement. */
  readonly nowMs: RawBuilder<Int>
  /** The same in microseconds: what fences of locks begin at. */
  readonly nowMicros: RawBuilder<Int>
  /** The larger of two expressions. */
  greatest(a: RawBuilder<unknown>, b: RawBuilder<unknown>): RawBuilder<Int>
  /** A dialect with connections of its own, or over the pool that was given; called again after `close`. */
  dialect(): Dialect
  /** Whether a table with this very name is there. */
  tableExists(db: Kysely<Tables>, name: string): Promise<boolean>
  /** Runs `work` while nobody else who calls this with the same name does, on any replica. */
  exclusively(db: Kysely<Tables>, name: string, work: (db: Kysely<Tables>) => Promise<void>): Promise<void>
  /** More to check when opened, such as settings of connections that were given. @throws ConfigError */
  check?: ((db: Kysely<Tables>) => Promise<void>) | undefined
  judge(error: unknown): Verdict
  /** Wakes listeners of a topic when the transaction has been committed; only together with `listen`. */
  notify?(channel: string, topic: string): RawBuilder<unknown>
  /** Hears of topics. `onLost`: the connection is gone, listen again. @returns how to stop. */
  listen?(
    channel: string,
    onTopic: (topic: string) => void,
    onLost: (error: unknown) => void,
  ): Promise<() => Promise<void>>
}
