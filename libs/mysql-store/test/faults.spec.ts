/** MariaDB that is cut off, silent, killed and restarted; and what is refused at start. A server of its own. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { createPool as createCallbackPool } from 'mysql2'
import { createConnection, createPool } from 'mysql2/promise'
import { ConfigError, StoreError, type Logger } from '@botmesh/core'
import { cutSuite, testCheckpoint, testMessage } from '@botmesh/sql-store/testing'
import { freePort, startFaultProxy, startMariaDb, type ServerInstance } from '../../../test/support/index.js'
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

async function asAdmin(...statements: string[]): Promise<void> {
  const connection = await createConnection({ uri: server.url })
  for (const statement of statements) await connection.query(statement)
  await connection.end()
}

function limitedUrl(password = SECRET, database = 'test'): string {
  return `mysql://limited:${encodeURIComponent(password)}@127.0.0.1:${server.port}/${database}`
}

async function refusal(options: MySQLStoreOptions): Promise<Error> {
  const store = new MySQLStore(options)
  const error: unknown = await store.open().then(
    () => undefined,
    (reason: unknown) => reason,
  )
  await store.close()
  if (error instanceof Error) return error
  throw new Error('Nothing was refused.')
}

const freshPrefix = (): string => `f${randomUUID().replaceAll('-', '')}`

cutSuite(
  { describe, it, expect },
  {
    name: 'MySQLStore',
    bed: async () => {
      const line = await startFaultProxy({ to: server.url })
      const prefix = freshPrefix()
      const stores: MySQLStore[] = []
      const make = (options: MySQLStoreOptions) => {
        const one = new MySQLStore({ prefix, connections: 4, callTimeoutMs: 1000, ...options })
        stores.push(one)
        return one
      }
      return {
        store: (options = {}) => make({ url: line.url, ...options }),
        witness: () => make({ url: server.url }),
        line,
        restart: () => server.restart(),
        pass: (ms) => sleep(ms),
        close: async () => {
          await Promise.all(stores.map((one) => one.close()))
          await line.stop()
        },
      }
    },
  },
)

describe('scenario 28: what is refused at start', () => {
  it('options that are unknown, missing or impossible, without the URL in the message', () => {
    const reason = (options: object): ConfigError => {
      try {
        expect(new MySQLStore(options)).toBeUndefined()
      } catch (error) {
        if (error instanceof ConfigError) return error
        throw error
      }
      throw new Error('Nothing was refused.')
    }
    expect(reason({ ulr: 'x' }).message).toMatch(/no option "ulr"; did you mean "url"/)
    expect(reason({ url: undefined }).message).toMatch(/"url" of MySQLStore is undefined/)
    expect(reason({ url: '' }).message).toMatch(/is empty/)
    expect(reason({ url: `postgres://u:${SECRET}@h/d` }).message).not.toContain(SECRET)
    expect(reason({ url: `no url ${SECRET}` }).message).not.toContain(SECRET)
    expect(reason({ url: 'mysql://h' }).message).toMatch(/names no database/)
    expect(reason({ url: 'mysql://h/d', pool: {} }).details.option).toBe('pool')
    expect(reason({ pool: {} }).message).toMatch(/is not a pool of mysql2/)
    expect(reason({ url: 'mysql://h/d', connections: 0 }).details.option).toBe('connections')
    expect(reason({ url: 'mysql://h/d', prefix: 'a b' }).details.option).toBe('prefix')
  })

  it('a wrong password, at once, naming no secret', async () => {
    const began = performance.now()
    const error = await refusal({ url: limitedUrl('geheim') })
    expect(error).toBeInstanceOf(ConfigError)
    expect(error.message).toMatch(/127\.0\.0\.1:\d+\/test: the user or its password is not accepted/)
    expect(JSON.stringify([error.message, error.cause, (error as ConfigError).details])).not.toContain(
      'geheim',
    )
    expect(performance.now() - began).toBeLessThan(5000)
  })

  it('a database that is not there', async () => {
    const error = await refusal({ url: server.url.replace(/test$/, 'nowhere') })
    expect(error).toBeInstanceOf(ConfigError)
    expect(error.message).toMatch(/there is no such database/)
  })

  it('missing rights to create tables; where they are up to date none are needed', async () => {
    const prefix = freshPrefix()
    const error = await refusal({ url: limitedUrl(SECRET, 'guarded'), prefix })
    expect(error).toBeInstanceOf(ConfigError)
    expect(error.message).toMatch(/lacks a right \(CREATE command denied.*CREATE and INDEX once/)
    const owner = new MySQLStore({ url: server.url.replace(/test$/, 'guarded'), prefix })
    await owner.open()
    for (const user of USERS) await asAdmin(`grant select, insert, update, delete on guarded.* to ${user}`)
    const store = new MySQLStore({ url: limitedUrl(SECRET, 'guarded'), prefix })
    await store.setCheckpoint('k', testCheckpoint('1:1'))
    expect(await store.journal.record('k', testMessage('m'))).toBe('recorded')
    expect((await owner.getCheckpoint('k'))?.revision).toBe('1:1')
    await Promise.all([store.close(), owner.close()])
  })

  it('a server that cannot be reached: tried until startTimeoutMs, then a retryable error', async () => {
    const lines: string[] = []
    const note = (_: object, text: string) => void lines.push(text)
    const logger: Logger = { debug: note, info: note, warn: note, error: note }
    const url = `mysql://u:${encodeURIComponent(SECRET)}@127.0.0.1:${await freePort()}/d`
    const error = await refusal({ url, startTimeoutMs: 400, logger })
    expect(error).toBeInstanceOf(StoreError)
    expect(error).toMatchObject({ retryable: true, details: { store: 'mysql', operation: 'open' } })
    expect(lines).toEqual(['MySQL cannot be reached yet'])
  })
})

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
