/** `SQLiteStore`: everything a bot keeps, in one file; for one machine, also with several processes on it (S1). */
import { isAbsolute, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sql, type Kysely } from 'kysely'
import {
  ConfigError,
  parseDuration,
  refuseUnknownOptions,
  requireOneOf,
  systemClock,
  systemRandom,
  type Duration,
} from '@botmesh/core'
import {
  SQL_STORE_OPTIONS,
  SqlStore,
  type Int,
  type SqlFlavor,
  type SqlStoreOptions,
  type Tables,
  type Verdict,
} from '@botmesh/sql-store'
import { SQLITE, isBusy, primaryCodeOf, sqliteDialect, type SqliteFileOptions } from './sqlite-file.js'

export interface SQLiteStoreOptions extends SqlStoreOptions {
  /** The file; made if there is none. `':memory:'`: nothing is kept, and no other store sees it. */
  path?: string | undefined
  /** The same as an address: `file:bot.db`, `file:///var/lib/bot.db`. */
  url?: string | undefined
  /** How long a call waits for another writer of the file. Default 5 s. */
  busyTimeoutMs?: Duration
  /** `'full'` (default): a commit survives a power cut. `'normal'`: only a crash of the process; several times faster. */
  synchronous?: 'full' | 'normal'
}

const OWN_OPTIONS = ['path', 'url', 'busyTimeoutMs', 'synchronous'] as const
const PATH_FORM = "the path of a file, such as 'data/bot.db', or \"url\": 'file:data/bot.db'"

export class SQLiteStore extends SqlStore {
  /** @throws ConfigError for an option that is unknown, missing (`path`) or impossible. Opens when first used. */
  constructor(options: SQLiteStoreOptions) {
    refuseUnknownOptions('SQLiteStore', options, [...OWN_OPTIONS, ...SQL_STORE_OPTIONS])
    const { clock = systemClock, random = systemRandom } = options
    super(
      sqliteFlavor({
        path: readPath(options),
        busyTimeoutMs: parseDuration('busyTimeoutMs', options.busyTimeoutMs ?? '5s'),
        synchronous: requireOneOf('synchronous', options.synchronous ?? 'full', ['full', 'normal']),
        ...{ clock, random },
      }),
      options,
    )
  }
}

function readPath({ path, url }: SQLiteStoreOptions): string {
  if (path !== undefined && url !== undefined) {
    throw new ConfigError('SQLiteStore takes either "path" or "url", not both.', {
      option: 'url',
      accepted: 'one of the two',
    })
  }
  const [option, given] = url === undefined ? (['path', path] as const) : (['url', url] as const)
  if (typeof given !== 'string' || given === '') {
    throw new ConfigError(
      `Option "${option}" of SQLiteStore is ${given === '' ? 'empty' : String(given)}; accepted: ${PATH_FORM}.`,
      { option, accepted: PATH_FORM },
    )
  }
  if (option === 'path') return given === ':memory:' || isAbsolute(given) ? given : resolve(given)
  if (!given.startsWith('file:')) {
    throw new ConfigError(
      `Option "url" of SQLiteStore does not begin with "file:"; accepted: ${PATH_FORM}.`,
      {
        option: 'url',
        accepted: PATH_FORM,
      },
    )
  }
  if (given === 'file::memory:') return ':memory:'
  return given.startsWith('file:/') ? fileURLToPath(given) : resolve(given.slice('file:'.length))
}

function sqliteFlavor(file: SqliteFileOptions): SqlFlavor {
  return {
    kind: 'sqlite',
    title: 'SQLite',
    shared: false,
    place: file.path,
    types: { name: 'text', text: 'text', integer: 'integer', serial: 'integer primary key autoincrement' },
    tableSuffix: '',
    upserts: true,
    unit: 'sequence',
    rowLocks: false,
    isolate: false,
    nowMs: sql<Int>`cast(round(unixepoch('subsec') * 1000) as integer)`,
    nowMicros: sql<Int>`cast(round(unixepoch('subsec') * 1000) as integer) * 1000`,
    greatest: (a, b) => sql<Int>`max(${a}, ${b})`,
    dialect: () => sqliteDialect(file),
    tableExists,
    exclusively: (db, _name, work) => db.transaction().execute(work),
    judge: (error) => judge(error, file.path),
  }
}

async function tableExists(db: Kysely<Tables>, name: string): Promise<boolean> {
  const { rows } = await sql`select 1 from sqlite_master where type = 'table' and name = ${name}`.execute(db)
  return rows.length > 0
}

function judge(error: unknown, path: string): Verdict {
  if (isBusy(error)) return { sort: 'again' }
  const code = primaryCodeOf(error)
  const refused = (text: string): Verdict => ({ sort: 'refused', option: 'path', text })
  if (code === SQLITE.NOTADB) return refused('the file is not a SQLite database; name another "path".')
  if (code === SQLITE.READONLY || code === SQLITE.PERM) {
    return refused(
      'the file cannot be written to; tables can neither be created nor changed: check its rights, and those of its folder.',
    )
  }
  // A file that cannot be opened at all is told without a code, by an error from outside of this realm.
  const { message = '' } = (error ?? {}) as { message?: string }
  if (code === SQLITE.CANTOPEN || message.includes('Unable to open')) {
    return refused(
      `the file cannot be opened: does its folder exist, and may this process write to it? (${path})`,
    )
  }
  return { sort: 'other' }
}
