/** PostgreSQL that is cut off, silent, killed and restarted; and what is refused at start. A server of its own. */
import { randomUUID } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { Client, Pool } from 'pg'
import { ConfigError, StoreError, type Logger } from '@botmesh/core'
import { cutSuite, testCheckpoint } from '@botmesh/sql-store/testing'
import {
  freePort,
  onTestEnd,
  startFaultProxy,
  startPostgres,
  type ServerInstance,
} from '../../../test/support/index.js'
import { PostgresStore, type PostgresStoreOptions } from '../src/index.js'

const SECRET = 'p:w/s ñ%'
const dir = mkdtempSync(join(tmpdir(), 'botmesh-hba-'))
onTestEnd(() => rmSync(dir, { recursive: true }))
let server: ServerInstance

beforeAll(async () => {
  // One user has to give a password, the others are trusted.
  const rules = join(dir, 'hba.conf')
  const lines = ['limited scram-sha-256', 'all trust'].map((rest) => {
    const [user = '', method = ''] = rest.split(' ')
    return `host all ${user} 127.0.0.1/32 ${method}\n`
  })
  writeFileSync(rules, lines.join(''))
  for (const path of [dir, rules]) chmodSync(path, 0o755)
  server = await startPostgres({ args: ['-c', `hba_file=${rules}`] })
  await asAdmin(`create role limited login password '${SECRET}'`)
}, 60_000)

async function asAdmin(...statements: string[]): Promise<void> {
  const client = new Client({ connectionString: server.url })
  await client.connect()
  for (const statement of statements) await client.query(statement)
  await client.end()
}

function limitedUrl(password = SECRET, database = 'postgres'): string {
  return `postgres://limited:${encodeURIComponent(password)}@127.0.0.1:${server.port}/${database}`
}

async function refusal(options: PostgresStoreOptions): Promise<Error> {
  const store = new PostgresStore(options)
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
    name: 'PostgresStore',
    bed: async () => {
      const line = await startFaultProxy({ to: server.url })
      const prefix = freshPrefix()
      const stores: PostgresStore[] = []
      const make = (options: PostgresStoreOptions) => {
        const one = new PostgresStore({ prefix, connections: 4, callTimeoutMs: 1000, ...options })
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
        expect(new PostgresStore(options)).toBeUndefined()
      } catch (error) {
        if (error instanceof ConfigError) return error
        throw error
      }
      throw new Error('Nothing was refused.')
    }
    expect(reason({ ulr: 'x' }).message).toMatch(/no option "ulr"; did you mean "url"/)
    expect(reason({ url: undefined }).message).toMatch(/"url" of PostgresStore is undefined/)
    expect(reason({ url: '' }).message).toMatch(/is empty/)
    expect(reason({ url: `mysql://u:${SECRET}@h/d` }).message).not.toContain(SECRET)
    expect(reason({ url: `no url ${SECRET}` }).message).not.toContain(SECRET)
    expect(reason({ url: 'postgres://h/d', pool: {} }).details.option).toBe('pool')
    expect(reason({ pool: {} }).message).toMatch(/is not a pool of pg/)
    expect(reason({ url: 'postgres://h/d', connections: 0 }).details.option).toBe('connections')
    expect(reason({ url: 'postgres://h/d', prefix: 'a b' }).details.option).toBe('prefix')
  })

  it('a wrong password, at once, naming no secret', async () => {
    const began = performance.now()
    const error = await refusal({ url: limitedUrl('geheim') })
    expect(error).toBeInstanceOf(ConfigError)
    expect(error.message).toMatch(/127\.0\.0\.1:\d+\/postgres: the user or its password is not accepted/)
    expect(JSON.stringify([error.message, error.cause, (error as ConfigError).details])).not.toContain(
      'geheim',
    )
    expect(performance.now() - began).toBeLessThan(5000)
  })

  it('a database that is not there', async () => {
    const error = await refusal({ url: server.url.replace(/postgres$/, 'nowhere') })
    expect(error).toBeInstanceOf(ConfigError)
    expect(error.message).toMatch(/there is no such database/)
  })

  it('missing rights to create tables; where they are up to date none are needed', async () => {
    const prefix = freshPrefix()
    const error = await refusal({ url: limitedUrl(), prefix })
    expect(error).toBeInstanceOf(ConfigError)
    expect(error.message).toMatch(/lacks a right \(permission denied for schema public\).*CREATE/)
    const owner = new PostgresStore({ url: server.url, prefix })
    await owner.open()
    await asAdmin(
      `grant select, insert, update, delete on all tables in schema public to limited`,
      `grant usage on all sequences in schema public to limited`,
    )
    const store = new PostgresStore({ url: limitedUrl(), prefix })
    await store.setCheckpoint('k', testCheckpoint('1:1'))
    await store.journal.record('k', {
      id: 'm',
      chatId: 'k',
      from: 'k',
      type: 'text',
      body: '',
      isGroup: false,
      timestamp: 1,
    })
    expect((await owner.getCheckpoint('k'))?.revision).toBe('1:1')
    await Promise.all([store.close(), owner.close()])
  })

  it('a server that cannot be reached: tried until startTimeoutMs, then a retryable error', async () => {
    const lines: string[] = []
    const note = (_: object, text: string) => void lines.push(text)
    const logger: Logger = { debug: note, info: note, warn: note, error: note }
    const url = `postgres://u:${encodeURIComponent(SECRET)}@127.0.0.1:${await freePort()}/d`
    const error = await refusal({ url, startTimeoutMs: 400, logger })
    expect(error).toBeInstanceOf(StoreError)
    expect(error).toMatchObject({ retryable: true, details: { store: 'postgres', operation: 'open' } })
    expect(lines).toEqual(['PostgreSQL cannot be reached yet'])
  })
})

describe('a pool that is given', () => {
  it('is used with its own settings and is not closed', async () => {
    // The strictest default isolation: the store asks for its own.
    const pool = new Pool({
      connectionString: server.url,
      max: 2,
      options: '-c default_transaction_isolation=serializable',
    })
    const prefix = freshPrefix()
    const store = new PostgresStore({ pool, prefix })
    const effects = { inboundId: 'm1', checkpoint: testCheckpoint('7:1'), expectedRevision: null }
    await Promise.all(
      Array.from({ length: 6 }, async (_, n) => {
        expect(await store.commitState('k', 7, '7#1', effects)).toMatchObject({ outcome: 'committed' })
        expect((await store.openState(`other ${n}`, 1))?.revision).toBeNull()
      }),
    )
    await store.close()
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    await pool.end()
  })
})

describe('the message log', () => {
  it('Z1: entries of another replica are pushed, not polled; after a cut they are heard again', async () => {
    const line = await startFaultProxy({ to: server.url })
    const prefix = freshPrefix()
    const store = new PostgresStore({ url: line.url, prefix })
    const other = new PostgresStore({ url: server.url, prefix })
    let heard: () => void = () => undefined
    const next = (): Promise<number> => {
      const began = performance.now()
      return new Promise((resolve) => (heard = () => resolve(performance.now() - began)))
    }
    const end = await store.log.subscribe('room', () => heard())
    await other.log.append('room', 'warm')
    const times: number[] = []
    for (let n = 0; n < 5; n += 1) {
      const told = next()
      await other.log.append('room', `entry ${n}`)
      times.push(await told)
    }
    // Polling alone would take 100 ms on the average, slow polling 2.5 s.
    expect(Math.min(...times)).toBeLessThan(80)
    line.reset()
    const again = next()
    await other.log.append('room', 'after the cut')
    expect(await again).toBeLessThan(6000)
    await end()
    await Promise.all([store.close(), other.close()])
  })
})
