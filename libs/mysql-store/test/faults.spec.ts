/**
 * MariaDB that is cut off, silent, killed and restarted; and what is refused at start. A server of its own. Where
 * MYSQL_URL is given the line to that server is cut too, but it is nobody's to kill.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { createPool as createCallbackPool } from 'mysql2'
import { createConnection, createPool, type RowDataPacket } from 'mysql2/promise'
import { cutSuite, rejection } from '@botmesh/core/testing'
import { serverSuite, storesOf, testCheckpoint } from '@botmesh/sql-store/testing'
import { freePort, startFaultProxy, startMariaDb, type ServerInstance } from '../../../test/support/index.js'
import { startReplicas } from '../../../test/support/store-replicas.js'
import { MySQLStore, type MySQLStoreOptions } from '../src/index.js'

const SECRET = "p:w/s ñ%'"
const USERS = ['limited@localhost', "limited@'127.0.0.1'"]
let server: ServerInstance

beforeAll(async () => {
  // A killed server keeps what it has acknowledged.
  server = await startMariaDb({ args: ['--innodb-flush-log-at-trx-commit=2'] })
  // In "test" a fresh installation lets everybody do everything.
  await asAdmin('create database guarded')
  // By both names of this machine: the anonymous user of a fresh installation has one of them.
  for (const user of USERS) {
    await asAdmin(`create user ${user} identified by '${SECRET.replace("'", "''")}'`)
    await asAdmin(`grant select on guarded.* to ${user}`)
  }
}, 60_000)

/** @returns the rows of the last one, if it has rows. */
async function asAdmin(...statements: string[]): Promise<Record<string, unknown>[]> {
  const connection = await createConnection({ uri: server.url })
  let rows: unknown
  for (const statement of statements) [rows] = await connection.query<RowDataPacket[]>(statement)
  await connection.end()
  return Array.isArray(rows) ? rows : []
}

async function refusal(options: MySQLStoreOptions): Promise<Error> {
  const store = new MySQLStore(options)
  const error = await rejection(store.open())
  await store.close()
  return error as Error
}

const freshPrefix = (): string => `f${randomUUID().replaceAll('-', '')}`
const make = (options: object): MySQLStore => new MySQLStore(options)

serverSuite(
  { describe, it, expect },
  {
    name: 'MySQLStore',
    kind: 'mysql',
    title: 'MySQL',
    ...{ make, freshPrefix, freePort },
    startLine: () => startFaultProxy({ to: server.url }),
    restart: () => server.restart(),
    pass: (ms) => sleep(ms),
    secret: SECRET,
    url: (login = {}) => {
      const url = new URL(server.url)
      const { user = url.username, password, database, port } = login
      url.username = user
      if (password !== undefined) url.password = encodeURIComponent(password)
      if (database !== undefined) url.pathname = `/${database}`
      if (port !== undefined) url.port = String(port)
      return url.href
    },
    refusedUrls: [
      [`postgres://u:${SECRET}@h/d`, /begins with "postgres:|cannot be read/],
      ['mysql://h', /names no database/],
    ],
    limited: {
      login: { user: 'limited', password: SECRET, database: 'guarded' },
      said: /lacks a right \(CREATE command denied.*CREATE and INDEX once/,
      grant: async () => {
        await asAdmin(...USERS.map((user) => `grant select, insert, update, delete on guarded.* to ${user}`))
      },
    },
    owner: { database: 'guarded' },
    execute: asAdmin,
    startReplicas: (url, prefix, count) =>
      startReplicas(new URL('./replica.ts', import.meta.url), url, prefix, count),
  },
)

const given = process.env['MYSQL_URL'] ?? ''
if (given !== '') {
  cutSuite(
    { describe, it, expect },
    {
      name: 'MySQLStore on the server of MYSQL_URL',
      bed: async () => {
        const line = await startFaultProxy({ to: given })
        const common = { prefix: freshPrefix(), connections: 4, callTimeoutMs: 1000 }
        const stores = storesOf<MySQLStoreOptions, MySQLStore>(make, common)
        return {
          store: (options = {}) => stores.store({ url: line.url, ...options }),
          witness: () => stores.store({ url: given }),
          line,
          restart: () => Promise.resolve(line.reset()),
          pass: (ms) => sleep(ms),
          close: async () => {
            await stores.close()
            await line.stop()
          },
        }
      },
    },
  )
}

describe('a pool that is given', () => {
  it('of either form is used with its own settings and is not closed', async () => {
    const promised = createPool({ uri: server.url, connectionLimit: 2 })
    const plain = createCallbackPool({ uri: server.url, connectionLimit: 2 })
    const prefix = freshPrefix()
    for (const pool of [promised, plain]) {
      const store = new MySQLStore({ pool, prefix })
      const effects = { inboundId: 'm1', checkpoint: testCheckpoint('7:1'), expectedRevision: null }
      await Promise.all(
        Array.from({ length: 6 }, async (_, n) => {
          expect(await store.commitState('k', 7, '7#1', effects)).toMatchObject({ outcome: 'committed' })
          expect((await store.openState(`other ${n}`, 1))?.revision).toBeNull()
        }),
      )
      await store.close()
    }
    expect((await promised.query('select 1 as one'))[0]).toEqual([{ one: 1 }])
    await promised.end()
    await plain.promise().end()
  })

  it('whose settings would change what is stored is refused', async () => {
    const counting = createPool({ uri: server.url, flags: ['-FOUND_ROWS'] })
    const error = await refusal({ pool: counting, prefix: freshPrefix() })
    expect(error.message).toMatch(/counts changed rows instead of found ones/)
    await counting.end()
    await asAdmin("set global sql_mode = 'NO_BACKSLASH_ESCAPES'")
    const unsafe = createPool({ uri: server.url })
    expect((await refusal({ pool: unsafe, prefix: freshPrefix() })).message).toMatch(/NO_BACKSLASH_ESCAPES/)
    // Connections of our own set their mode themselves.
    const store = new MySQLStore({ url: server.url, prefix: freshPrefix() })
    await store.setUserIf("o'hara\\", { name: "o'hara\\" }, null)
    expect((await store.getUser("o'hara\\"))?.data).toEqual({ name: "o'hara\\" })
    await store.close()
    await unsafe.end()
    await asAdmin("set global sql_mode = 'STRICT_TRANS_TABLES'")
  })
})
