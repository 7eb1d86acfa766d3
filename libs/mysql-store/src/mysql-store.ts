/** `MySQLStore`: everything a bot keeps, in MySQL 8 or MariaDB 10.5 and later; turns live elsewhere (Redis, one process). */
import { MysqlDialect, sql, type Kysely } from 'kysely'
import { createPool, type Pool } from 'mysql2'
import type { Pool as PromisePool } from 'mysql2/promise'
import { ConfigError } from '@botmesh/core'
import {
  CONNECT_TIMEOUT_MS,
  SqlStore,
  readServerOptions,
  type Int,
  type ServerForm,
  type ServerOptions,
  type ServerTarget,
  type SqlFlavor,
  type Tables,
} from '@botmesh/sql-store'
import { DeadlinePool } from './mysql-pool.js'
import { judge } from './verdict.js'

export interface MySQLStoreOptions extends ServerOptions<Pool | PromisePool> {
  /** `mysql://[user:password@]host[:port]/database`. */
  url?: string | undefined
  /** A pool of `mysql2` (or of `mysql2/promise`), shared with the application: it is not closed. */
  pool?: Pool | PromisePool
}

/** How long a replica waits for another one that migrates, in seconds. */
const MIGRATION_WAIT_S = 60

const FORM: ServerForm<Pool | PromisePool, Pool> = {
  store: 'MySQLStore',
  urlForm: 'mysql://[user:password@]host[:port]/database',
  protocols: /^(mysql|mariadb):$/,
  defaultPort: 3306,
  needsDatabase: true,
  driver: 'mysql2',
  poolForm: 'a pool made with `createPool(…)` of mysql2 or mysql2/promise',
  readPool: (pool) => {
    // The promise form wraps the other one.
    const raw: Pool = 'pool' in pool ? pool.pool : pool
    return typeof raw.getConnection === 'function' && typeof raw.escape === 'function' ? raw : null
  },
}

export class MySQLStore extends SqlStore {
  /** @throws ConfigError for an option that is unknown, missing (`url`) or impossible. Connects when first used. */
  constructor(options: MySQLStoreOptions) {
    super(mysqlFlavor(readServerOptions(options, FORM)), options)
  }
}

/** A pool of our own for each opening, or the one that was given. */
function poolOf({ from }: ServerTarget<Pool>): Pool {
  if ('pool' in from) return from.pool
  return createPool({
    // A commit travels as one text. Every value in it is bound, none is pasted.
    multipleStatements: true,
    uri: from.url,
    connectionLimit: from.connections,
    connectTimeout: CONNECT_TIMEOUT_MS,
    enableKeepAlive: true,
    charset: 'utf8mb4',
  })
}

/** Its connections take several statements in one text: ours do, and those of a pool where the application allows it. */
function takesPackets({ from }: ServerTarget<Pool>): boolean {
  if ('url' in from) return true
  const { config } = from.pool as { config?: { connectionConfig?: { multipleStatements?: unknown } } }
  return config?.connectionConfig?.multipleStatements === true
}

function mysqlFlavor(target: ServerTarget<Pool>): SqlFlavor {
  const { clock, timeoutMs } = target
  const own = 'url' in target.from
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
    unit: takesPackets(target) ? 'packet' : undefined,
    rowLocks: true,
    isolate: !own,
    // sysdate, not now: a statement that waited for a lock began earlier.
    nowMs: sql<Int>`cast(unix_timestamp(sysdate(3)) * 1000 as signed)`,
    nowMicros: sql<Int>`cast(unix_timestamp(sysdate(6)) * 1000000 as signed)`,
    greatest: (a, b) => sql<Int>`greatest(${a}, ${b})`,
    dialect: () => new MysqlDialect({ pool: new DeadlinePool(poolOf(target), { clock, timeoutMs, own }) }),
    tableExists,
    exclusively,
    check: own ? undefined : check,
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
