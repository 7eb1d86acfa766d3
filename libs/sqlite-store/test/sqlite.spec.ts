/** What is particular to SQLite: options, errors, several processes on one file, a process that dies in a commit. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, it } from '@jest/globals'
import Database from 'libsql'
import { ConfigError } from '@botmesh/core'
import { chainOfCommits, sqlSuite, storesOf, testCheckpoint } from '@botmesh/sql-store/testing'
import { spawnReplica, type Replica } from '../../../test/support/index.js'
import { SQLiteStore, type SQLiteStoreOptions } from '../src/index.js'
import { folder } from './beds.js'

const files = folder()
afterAll(() => files.remove())

sqlSuite(
  { describe, it, expect },
  {
    name: 'SQLiteStore',
    bed: async () => {
      const path = files.path()
      const make = (options: SQLiteStoreOptions): SQLiteStore => new SQLiteStore(options)
      return {
        ...storesOf(make, { path, prefix: 'shop', synchronous: 'normal' }),
        prefix: 'shop',
        execute: async (statement) => {
          const db = new Database(path)
          try {
            const prepared = db.prepare(statement)
            if (prepared.reader) return prepared.all() as Record<string, unknown>[]
            prepared.run()
            return []
          } finally {
            db.close()
          }
        },
        pass: (ms) => sleep(ms),
      }
    },
  },
)

function refusal(make: () => unknown): ConfigError {
  try {
    make()
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
  throw new Error('Nothing was refused.')
}

describe('S1, bad input: options of SQLiteStore', () => {
  it('unknown, missing and impossible ones are refused by name', () => {
    const make = (options: object) => () => new SQLiteStore(options)
    expect(refusal(make({ pathh: 'x.db' })).message).toMatch(/no option "pathh".*did you mean "path"/)
    expect(refusal(make({})).details.option).toBe('path')
    expect(refusal(make({ path: '' })).message).toMatch(/"path" .*is empty/)
    expect(refusal(make({ path: 'a', url: 'file:a' })).details.option).toBe('url')
    expect(refusal(make({ url: 'postgres://x' })).message).toMatch(/does not begin with "file:"/)
    expect(refusal(make({ path: 'a', prefix: 'my-shop' })).message).toMatch(/"prefix" is "my-shop"/)
    expect(refusal(make({ path: 'a', synchronous: 'off' })).details.option).toBe('synchronous')
    expect(refusal(make({ path: 'a', dedupeMs: '-1s' })).details.option).toBe('dedupeMs')
  })

  it('S1: it says that its data is not shared between machines', () => {
    expect(new SQLiteStore({ path: 'x.db' })).toMatchObject({ kind: 'sqlite', shared: false })
  })

  it('a path and the same as an address are one file', async () => {
    const path = files.path()
    const one = new SQLiteStore({ path })
    const relativePath = relative(process.cwd(), path)
    await one.setCheckpoint('k', testCheckpoint('1:1'))
    for (const options of [
      { url: `file://${path}` },
      { url: `file:${relativePath}` },
      { path: relativePath },
    ]) {
      const other = new SQLiteStore(options)
      expect((await other.getCheckpoint('k'))?.revision).toBe('1:1')
      await other.close()
    }
    await one.close()
  })

  it('a file that cannot be one is refused by a clear error', async () => {
    const noDatabase = files.path()
    writeFileSync(noDatabase, 'this is a letter and no database '.repeat(100))
    await expect(new SQLiteStore({ path: noDatabase }).open()).rejects.toThrow(/is not a SQLite database/)
    const inNoFolder = `${files.path('nowhere')}/bot.db`
    await expect(new SQLiteStore({ path: inNoFolder }).open()).rejects.toThrow(ConfigError)
    await expect(new SQLiteStore({ path: inNoFolder }).open()).rejects.toThrow(/does its folder exist/)
    const directory = files.path('folder')
    mkdirSync(directory)
    await expect(new SQLiteStore({ path: directory }).open()).rejects.toThrow(ConfigError)
  })

  it.each([
    { closed: 'file', fileMode: 0o444, folderMode: 0o555, journal: 'wal' },
    // Its journal could not be written beside it.
    { closed: 'folder', fileMode: 0o666, folderMode: 0o555, journal: 'wal' },
    { closed: 'folder', fileMode: 0o666, folderMode: 0o555, journal: 'delete' },
  ])(
    'S1: a $closed that this user may not write is refused by name (journal: $journal)',
    async ({ fileMode, folderMode, journal }) => {
      const path = files.path()
      // Somebody else's table: those of the replica are still to be made.
      const owner = new Database(path)
      owner.exec(`pragma journal_mode = ${journal}; create table other (id integer)`)
      owner.close()
      chmodSync(path, fileMode)
      chmodSync(dirname(path), folderMode)
      // In a process of its own: whom nobody refuses anything becomes nobody there.
      const replica = spawnReplica(new URL('./file-replica.ts', import.meta.url), { FILE: path })
      try {
        await replica.next('ready', { timeoutMs: 30_000 })
        replica.send({ do: 'open-as-nobody' })
        const { error } = await replica.next('refused')
        expect(error).toMatchObject({
          message: expect.stringMatching(/cannot be written to|may this process write to it/),
          code: 'CONFIG',
          details: { option: 'path' },
        })
        expect(error).toMatchObject({ message: expect.stringContaining(path) })
      } finally {
        chmodSync(dirname(path), 0o755)
      }
    },
  )

  it('another writer that holds the file too long is a retryable error, and nothing is lost', async () => {
    const path = files.path()
    const store = new SQLiteStore({ path, busyTimeoutMs: 50 })
    await store.open()
    const other = new Database(path)
    other.exec('begin immediate')
    const waiting = store.setCheckpoint('k', testCheckpoint('1:1'))
    await sleep(200)
    other.exec('rollback')
    await waiting
    expect((await store.getCheckpoint('k'))?.revision).toBe('1:1')
    other.close()
    await store.close()
  })
})

describe('S1: several processes on one file', () => {
  const script = new URL('./file-replica.ts', import.meta.url)

  /** Processes that open the file at one moment. */
  async function start(path: string, count: number): Promise<Replica[]> {
    const replicas = Array.from({ length: count }, () => spawnReplica(script, { FILE: path }))
    await Promise.all(replicas.map((one) => one.next('ready', { timeoutMs: 30_000 })))
    for (const one of replicas) one.send({ do: 'open' })
    await Promise.all(replicas.map((one) => one.next('up', { timeoutMs: 30_000 })))
    return replicas
  }

  it('migrate once although they start together, and count one user up without losing a step', async () => {
    const path = files.path()
    const replicas = await start(path, 4)
    for (const one of replicas) one.send({ do: 'count', times: 25 })
    await Promise.all(replicas.map((one) => one.next('counted', { timeoutMs: 30_000 })))
    const store = new SQLiteStore({ path })
    expect((await store.getUser('u'))?.data).toEqual({ count: 100 })
    await store.close()
    const db = new Database(path)
    expect(db.prepare('select count(*) as n from botmesh_migrations').all()).toEqual([{ n: 1 }])
    db.close()
    await Promise.all(replicas.map((one) => one.kill()))
  })

  it('one that is killed in the middle of its commits leaves a file in which every commit is whole', async () => {
    const path = files.path()
    const [replica] = (await start(path, 1)) as [Replica]
    replica.send({ do: 'commit' })
    const told = await replica.next('committed', { where: ({ n }) => Number(n) > 20 })
    await replica.kill()
    const store = new SQLiteStore({ path })
    const last = Number((await store.getCheckpoint('k'))?.revision.split(':')[1])
    expect(last).toBeGreaterThanOrEqual(Number(told['n']))
    expect(await store.outbox.entries('k')).toHaveLength(last)
    expect((await chainOfCommits(store, 'k', 8, 3)).revisions).toHaveLength(3)
    await store.close()
  })
})
