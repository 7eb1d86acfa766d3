/** `MySQLStore`: everything a bot keeps, in MySQL 8 or MariaDB 10.5 and later; turns live elsewhere (Redis, one process). */
import { MysqlDialect, sql, type Kysely } from 'kysely'
import { createPool, type Pool } from 'mysql2'
import type { Pool as PromisePool } from 'mysql2/promise'
import {
  ConfigError,
  describeValue,
  parseDuration,
  refuseUnknownOptions,
  systemClock,
  type Clock,
  type Duration,
} from '@botmesh/core'
import {
  SQL_STORE_OPTIONS,
  SqlStore,
  type Int,
  type SqlFlavor,
  type SqlStoreOptions,
  type Tables,
} from '@botmesh/sql-store'
import { DeadlinePool } from './mysql-pool.js'
import { judge } from './verdict.js'

export interface MySQLStoreOptions extends SqlStoreOptions {
  /** `mysql://[user:password@]host[:port]/database`. */
  url?: string | undefined
  /** A pool of `mysql2` (or of `mysql2/promise`), shared with the application: it is not closed. */
  pool?: Pool | PromisePool
  /** Most connections at a time, with `url`. Default 10. */
  connections?: number
  /** How long a statement may take before its connection is given up and the call rejects. Default 10 s. */
  callTimeoutMs?: Duration
}

const OWN_OPTIONS = ['url', 'pool', 'connections', 'callTimeoutMs'] as const
const URL_FORM = 'mysql://[user:password@]host[:port]/database'
const CONNECT_TIMEOUT_MS = 10_000
/** How long a replica waits for another one that migrates, in seconds. */
const MIGRATION_WAIT_S = 60

export class MySQLStore extends SqlStore {
  /** @throws ConfigError for an option that is unknown, missing (`url`) or impossible. Connects when first used. */
  constructor(options: MySQLStoreOptions) {
    refuseUnknownOptions('MySQLStore', options, [...OWN_OPTIONS, ...SQL_STORE_OPTIONS])
    const timeoutMs = parseDuration('callTimeoutMs', options.callTimeoutMs ?? '10s', { minMs: 100 })
    super(mysqlFlavor(readTarget(options), options.clock ?? systemClock, timeoutMs), options)
  }
}

interface Target {
  place: string
  /** A pool of our own for each opening, or the one that was given. */
  pool(): Pool
  own: boolean
  /** Its connections take several statements in one text. */
  packets: boolean
}

function readTarget({ url, pool, connections = 10 }: MySQLStoreOptions): Target {
  if (pool !== undefined) {
    if (url !== undefined) {
      throw new ConfigError('MySQLStore takes either "url" or "pool", not both.', {
        option: 'pool',
        accepted: 'one of the two',
      })
    }
    const given = readPool(pool)
    return { place: 'the given pool', pool: () => given, own: false, packets: takesPackets(given) }
  }
  const { hostname, port, pathname } = readUrl(url)
  if (!Number.isInteger(connections) || connections < 2 || connections > 1000) {
    const accepted = 'a whole number from 2 to 1000'
    throw new ConfigError(`Option "connections" is ${describeValue(connections)}; accepted: ${accepted}.`, {
      option: 'connections',
      value: connections,
      accepted,
    })
  }
  return {
    place: `${hostname || 'localhost'}:${port || '3306'}${pathname}`,
    own: true,
    packets: true,
    pool: () =>
      createPool({
        // A commit travels as one text. Every value in it is bound, none is pasted.
        multipleStatements: true,
        uri: String(url),
        connectionLimit: connections,
        connectTimeout: CONNECT_TIMEOUT_MS,
        enableKeepAlive: true,
        charset: 'utf8mb4',
      }),
  }
}

/** Where the application has allowed it for its pool. */
function takesPackets(pool: Pool): boolean {
  const { config } = pool as { config?: { connectionConfig?: { multipleStatements?: unknown } } }
  return config?.connectionConfig?.multipleStatements === true
}

function readPool(pool: Pool | PromisePool): Pool {
  // The promise form wraps the other one.
  const raw: Pool = 'pool' in pool ? pool.pool : pool
  if (typeof raw.getConnection === 'function' && typeof raw.escape === 'function') return raw
  const accepted = 'a pool made with `createPool(…)` of mysql2 or mysql2/promise'
  throw new ConfigError(`Option "pool" is not a pool of mysql2; accepted: ${accepted}.`, {
    option: 'pool',
    accepted,
  })
}

/** Errors never show the URL itself: it may carry a password. */
function readUrl(url: unknown): URL {
  const bad = (why: string): ConfigError =>
    new ConfigError(
      `Option "url" of MySQLStore ${why}; accepted: ${URL_FORM} (is the environment variable set?), or "pool".`,
      { option: 'url', accepted: URL_FORM },
    )
  if (url === undefined || url === '') throw bad(url === '' ? 'is empty' : 'is undefined')
  if (typeof url !== 'string' || !URL.canParse(url)) throw bad('cannot be read as a URL')
  const parsed = new URL(url)
  if (!/^(mysql|mariadb):$/.test(parsed.protocol)) throw bad(`begins with "${parsed.protocol}//"`)
  if (parsed.pathname.length < 2) throw bad('names no database')
  return parsed
}

function mysqlFlavor(target: Target, clock: Clock, timeoutMs: number): SqlFlavor {
  return {
    kind: 'mysql',
    title: 'MySQL',
    shared: true,
    place: target.place,
    types: {
      name: 'varchar(1000) character set ascii collate ascii_bin',
      text: 'longtext character set utf8mb4 collate utf8mb4_bin',
      integer: 'bigint',
      serial: 'bigint not null auto_increment primary key',
    },
    tableSuffix: 'engine = InnoDB row_format = dynamic',
    upserts: false,
    unit: target.packets ? 'packet' : undefined,
    rowLocks: true,
    isolate: !target.own,
    // sysdate, not now: a statement that waited for a lock began earlier.
    nowMs: sql<Int>`cast(unix_timestamp(sysdate(3)) * 1000 as signed)`,
    nowMicros: sql<Int>`cast(unix_timestamp(sysdate(6)) * 1000000 as signed)`,
    greatest: (a, b) => sql<Int>`greatest(${a}, ${b})`,
    dialect: () =>
      new MysqlDialect({ pool: new DeadlinePool(target.pool(), { clock, timeoutMs, own: target.own }) }),
    tableExists,
    exclusively,
    check: target.own ? undefined : check,
    judge,
  }
}

async function tableExists(db: Kysely<Tables>, name: string): Promise<boolean> {
  const { rows } =
    await sql`select 1 from information_schema.tables where table_schema = database() and table_name = ${name}`.execute(
      db,
    )
  return rows.length > 0
}

/** By a lock of the session: DDL commits, so that no transaction could hold one. */
function exclusively(
  db: Kysely<Tables>,
  name: string,
  work: (db: Kysely<Tables>) => Promise<void>,
): Promise<void> {
  return db.connection().execute(async (connection) => {
    // Names of locks are the server's, not the database's, and have at most 64 characters.
    const lock = sql`concat('botmesh:', sha1(concat(database(), '/', ${name})))`
    for (let waitedS = 0; ; waitedS += 1) {
      const { rows } = await sql<{ got: Int }>`select get_lock(${lock}, 1) as got`.execute(connection)
      if (Number(rows[0]?.got) === 1) break
      if (waitedS >= MIGRATION_WAIT_S) throw new Error('Another replica has been migrating for too long.')
    }
    try {
      await work(connection)
    } finally {
      await sql`select release_lock(${lock})`.execute(connection)
    }
  })
}

/** A pool that was given may have settings that would change what is stored, or what "found" means. */
async function check(db: Kysely<Tables>): Promise<void> {
  const { rows } = await sql<{ mode: string }>`select @@sql_mode as mode`.execute(db)
  if (/NO_BACKSLASH_ESCAPES/.test(rows[0]?.mode ?? '')) {
    throw new ConfigError(
      'The given pool has NO_BACKSLASH_ESCAPES in its sql_mode, under which mysql2 cannot escape values safely.',
      { option: 'pool', accepted: 'a sql_mode without NO_BACKSLASH_ESCAPES' },
    )
  }
  const { numUpdatedRows } = await db
    .updateTable('migrations')
    .set({ version: 1 })
    .where('version', '=', 1)
    .executeTakeFirst()
  if (Number(numUpdatedRows) === 1) return
  throw new ConfigError(
    'The given pool counts changed rows instead of found ones; make it without the flag "-FOUND_ROWS".',
    { option: 'pool', accepted: 'a pool with the flag FOUND_ROWS, which mysql2 sets by default' },
  )
}
