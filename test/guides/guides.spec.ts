/** What the guide to locks promises holds on real servers. That guides quote compiled code: blocks.spec.ts. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from '@jest/globals'
import { Redis } from 'ioredis'
import { Pool } from 'pg'
import { MemoryStore, TaskContext } from '@botmesh/core'
import { ManualClock } from '@botmesh/core/testing'
import { onTestEnd, sharedPostgresUrl, sharedRedisUrl, waitFor } from '../support/index.js'
import { chargeAll, closeMonth, putFenced, setBalance, setFenced, withLock } from './fenced-writes.js'

describe('scenario 33, S2: a resource refuses the fence of an earlier owner', () => {
  it('SQL: one statement, and several', async () => {
    const schema = `guide_${process.pid}`
    const options = `-c search_path=${schema}`
    const db = new Pool({ connectionString: await sharedPostgresUrl(), options })
    try {
      await db.query(`CREATE SCHEMA ${schema};
        CREATE TABLE accounts (id text PRIMARY KEY, cents bigint, fence bigint NOT NULL);
        CREATE TABLE guards (name text PRIMARY KEY, fence bigint NOT NULL);
        CREATE TABLE closings (month text);
        INSERT INTO accounts VALUES ('ana', 0, 0)`)
      expect(await setBalance(db, 'ana', 100, 7)).toBe(true)
      expect(await setBalance(db, 'ana', 200, 8)).toBe(true)
      expect(await setBalance(db, 'ana', 300, 7)).toBe(false)
      expect(await setBalance(db, 'ana', 250, 8)).toBe(true)
      expect((await db.query('SELECT cents FROM accounts')).rows).toEqual([{ cents: '250' }])
      expect([await closeMonth(db, 'May', 8), await closeMonth(db, 'May', 7)]).toEqual([true, false])
      expect((await db.query('SELECT count(*)::int AS n FROM closings')).rows).toEqual([{ n: 1 }])
      await expect(closeMonth(db, 'x\u0000', 9)).rejects.toThrow(/invalid byte/)
      expect(db.idleCount).toBe(db.totalCount)
    } finally {
      await db.query(`DROP SCHEMA ${schema} CASCADE`)
      await db.end()
    }
  })

  it('Redis: a script', async () => {
    const redis = new Redis(await sharedRedisUrl())
    const key = `guide:${process.pid}`
    const fence = 1_893_456_000_000_001
    expect(await setFenced(redis, key, 'old', fence)).toBe(true)
    expect(await setFenced(redis, key, 'new', fence + 1)).toBe(true)
    expect(await setFenced(redis, key, 'late', fence)).toBe(false)
    expect(await redis.hget(key, 'value')).toBe('new')
    await redis.del(key)
    await redis.quit()
  })

  it('an object store with conditional writes', async () => {
    const { url, stored, onPut } = await objectStore()
    const { signal } = new AbortController()
    expect(await putFenced(url, 'first', 7, signal)).toBe(true)
    expect(await putFenced(url, 'second', 8, signal)).toBe(true)
    expect(await putFenced(url, 'late', 7, signal)).toBe(false)
    // Between its look and its write somebody else writes: it looks again, and gives in.
    onPut(async () => void (await putFenced(url, 'third', 9, signal)))
    expect(await putFenced(url, 'late too', 8, signal)).toBe(false)
    expect(stored()).toBe('third')
  })

  it('an API: fence and idempotency key of a task', async () => {
    const seen: unknown[] = []
    const url = await serve(
      createServer(({ headers }, response) => {
        seen.push([headers['x-fence'], headers['idempotency-key']])
        response.writeHead(seen.length === 1 ? 200 : 409).end()
      }),
    )
    const { signal } = new AbortController()
    const run = { id: 'charge', occurrence: Date.UTC(2030, 0, 1, 9), attempt: 1, fence: 7, signal }
    const task = new TaskContext({ ...run, assertHeld: () => undefined })
    await chargeAll(url, task)
    await expect(chargeAll(url, task)).rejects.toThrow('409')
    expect(seen[0]).toEqual(['7', 'charges 2030-01-01T09:00:00.000Z'])
  })
})

describe('S2: withLock', () => {
  it('keeps its lock while it works, keeps others out, and tells of a loss', async () => {
    const clock = new ManualClock()
    const locks = new MemoryStore({ clock })
    let finish: () => void = () => undefined
    const held = withLock(
      locks,
      'job',
      (fence) => new Promise((resolve) => (finish = () => resolve(fence))),
      60,
    )
    expect(await withLock(locks, 'job', async () => 'in')).toBeNull()
    finish()
    expect(await held).toBeGreaterThan(0)
    expect(await withLock(locks, 'job', async () => 'in')).toBe('in')
    const lost: unknown[] = []
    const late = withLock(
      locks,
      'job',
      async (_fence, signal) => {
        signal.addEventListener('abort', () => lost.push(signal.reason))
        clock.freeze(1000)
        await waitFor(() => lost.length > 0, { what: 'the loss is told' })
        return 'late'
      },
      60,
    )
    expect(await late).toBe('late')
    expect(String(lost[0])).toMatch(/"job" was lost/)
  })
})

async function serve(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestEnd(async () => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** One object, with entity tags and the conditions that object stores check. */
async function objectStore() {
  let [body, fence, version] = ['', '', 0]
  let before: (() => Promise<void>) | null = null
  const server = createServer((request, response) => {
    const finish = async (sent: string) => {
      const act = request.method === 'PUT' ? before : null
      if (act !== null) {
        before = null
        await act()
      }
      const { 'if-match': match, 'if-none-match': none, 'x-amz-meta-fence': given } = request.headers
      const tag = `"${version}"`
      if (request.method === 'PUT') {
        if ((match !== undefined && match !== tag) || (none === '*' && version > 0))
          return response.writeHead(412).end()
        body = sent
        fence = String(given)
        version += 1
        return response.writeHead(200).end()
      }
      if (version === 0) return response.writeHead(404).end()
      return response.writeHead(200, { etag: tag, 'x-amz-meta-fence': fence }).end()
    }
    let sent = ''
    request.on('data', (chunk: Buffer) => (sent += chunk.toString()))
    request.on('end', () => void finish(sent))
  })
  const url = `${await serve(server)}/object`
  return { url, stored: () => body, onPut: (act: () => Promise<void>) => (before = act) }
}
