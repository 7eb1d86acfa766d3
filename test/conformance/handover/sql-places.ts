/** Databases beside turns in Redis: PostgreSQL, MariaDB and SQLite, each store with tables of its own. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { createPool, type RowDataPacket } from 'mysql2/promise'
import { Pool } from 'pg'
import { MySQLStore } from '@botmesh/mysql-store'
import { PostgresStore } from '@botmesh/postgres-store'
import { SQLiteStore } from '@botmesh/sqlite-store'
import { onTestEnd, sharedMariaDbUrl, sharedPostgresUrl } from '../../support/index.js'
import type { SqlPlace } from './sql-bed.js'

type Query = SqlPlace['query']

/** Two connections each: dozens of replicas run at a time. */
const FEW = { connections: 2 }

export interface DatabaseOf {
  name: string
  /** Which cell of a row: every database gets others. */
  turn: number
  place: () => Promise<(prefix: string) => SqlPlace>
}

export const databases: DatabaseOf[] = [
  {
    name: 'PostgreSQL',
    turn: 1,
    place: async () => {
      const url = await sharedPostgresUrl()
      const pool = new Pool({ connectionString: url, max: 4 }).on('error', () => undefined)
      onTestEnd(() => pool.end())
      const query: Query = async (text) => (await pool.query<Record<string, unknown>>(text)).rows
      return (prefix) => ({
        prefix,
        query,
        store: (clock) => new PostgresStore({ url, prefix, clock, ...FEW }),
      })
    },
  },
  {
    name: 'MariaDB',
    turn: 2,
    place: async () => {
      const url = await sharedMariaDbUrl()
      const pool = createPool({ uri: url, connectionLimit: 4 })
      onTestEnd(() => pool.end())
      const query: Query = async (text) => (await pool.query<RowDataPacket[]>(text))[0]
      return (prefix) => ({ prefix, query, store: (clock) => new MySQLStore({ url, prefix, clock, ...FEW }) })
    },
  },
  {
    name: 'SQLite',
    turn: 3,
    place: async () => {
      const dir = mkdtempSync(join(tmpdir(), 'botmesh-handover-'))
      onTestEnd(() => rmSync(dir, { recursive: true }))
      return (prefix) => {
        const path = join(dir, `${prefix}.db`)
        const query: Query = async (text) => {
          const db = new Database(path)
          try {
            return db.prepare(text).all() as Record<string, unknown>[]
          } finally {
            db.close()
          }
        }
        const store: SqlPlace['store'] = (clock) =>
          new SQLiteStore({ path, prefix, clock, synchronous: 'normal' })
        return { prefix, query, store }
      }
    },
  },
]

const places = new Map<DatabaseOf, ReturnType<DatabaseOf['place']>>()

/** Begun once a database and spec file. */
export function placeIn(database: DatabaseOf): ReturnType<DatabaseOf['place']> {
  const place = places.get(database) ?? database.place()
  places.set(database, place)
  return place
}
