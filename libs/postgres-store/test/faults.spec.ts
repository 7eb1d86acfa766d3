/** PostgreSQL that is cut off, silent, killed and restarted; and what is refused at start. A server of its own. */
import { randomUUID } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { Client, Pool } from 'pg'
import { serverSuite, testCheckpoint } from '@botmesh/sql-store/testing'
import {
  freePort,
  onTestEnd,
  startFaultProxy,
  startPostgres,
  type ServerInstance,
} from '../../../test/support/index.js'
import { startReplicas } from '../../../test/support/store-replicas.js'
import { PostgresStore } from '../src/index.js'
import { startPooler } from './pooler.js'

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

/** @returns the rows of the last one. */
async function asAdmin(...statements: string[]): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: server.url })
  await client.connect()
  let rows: Record<string, unknown>[] = []
  for (const statement of statements) rows = (await client.query<Record<string, unknown>>(statement)).rows
  await client.end()
  return rows
}

const freshPrefix = (): string => `f${randomUUID().replaceAll('-', '')}`
const make = (options: object): PostgresStore => new PostgresStore(options)

serverSuite(
  { describe, it, expect },
  {
    name: 'PostgresStore',
    kind: 'postgres',
    title: 'PostgreSQL',
    ...{ make, freshPrefix, freePort },
    startLine: () => startFaultProxy({ to: server.url }),
    restart: () => server.restart(),
    pass: (ms) => sleep(ms),
    secret: SECRET,
    url: ({ user = 'postgres', password = '', database = 'postgres', port = server.port } = {}) =>
      `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`,
    refusedUrls: [[`mysql://u:${SECRET}@h/d`, /begins with "mysql:|cannot be read/]],
    limited: {
      login: { user: 'limited', password: SECRET },
      said: /lacks a right \(permission denied for schema public\).*CREATE/,
      grant: async () => {
        await asAdmin(
          `grant select, insert, update, delete on all tables in schema public to limited`,
          `grant usage on all sequences in schema public to limited`,
        )
      },
    },
    owner: {},
    execute: asAdmin,
    startReplicas: (url, prefix, count) =>
      startReplicas(new URL('./replica.ts', import.meta.url), url, prefix, count),
  },
)

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

  it('S1: that is used up, or ended, holds neither a call nor the closing of the store', async () => {
    const pool = new Pool({ connectionString: server.url, max: 1 })
    const store = new PostgresStore({ pool, prefix: freshPrefix(), callTimeoutMs: 300 })
    await store.open()
    const leaked = await pool.connect()
    const called = store.getCheckpoint('k').catch(String)
    while (pool.waitingCount === 0) await new Promise((resolve) => setImmediate(resolve))
    const ended = pool.end()
    await store.close()
    // The pool says so itself when the call is tried again.
    expect(await called).toMatch(/StoreError: PostgreSQL could not do "getCheckpoint"/)
    leaked.release()
    await ended
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

describe('a pooler that hands out connections by the transaction', () => {
  it('does not know the named statements: they are sent again without a name, and later ones have none', async () => {
    const pooler = await startPooler(server.port)
    const store = new PostgresStore({ url: pooler.url, prefix: freshPrefix(), connections: 2 })
    for (let n = 1; n <= 12; n += 1) {
      const revision = `7:${n}`
      const before = n === 1 ? null : `7:${n - 1}`
      expect((await store.openState('k', 7))?.revision ?? null).toBe(before)
      const effects = { inboundId: `m${n}`, checkpoint: testCheckpoint(revision), expectedRevision: before }
      expect(await store.commitState('k', 7, `7#${n}`, effects)).toMatchObject({
        outcome: 'committed',
        revision,
      })
    }
    // Something was refused, and it was not tried over and over.
    const { refused } = pooler
    expect(refused).toBeGreaterThan(0)
    expect(refused).toBeLessThanOrEqual(4)
    for (let n = 0; n < 12; n += 1) expect(await store.isCommitted('k', `m${n + 1}`)).toBe(true)
    expect(pooler.refused).toBe(refused)
    await store.close()
    await pooler.stop()
  })
})
