/** The store suites on a real Redis. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { storeSuite } from '@botmesh/core/testing'
import { RedisStore } from '../src/index.js'
import { waitFor } from '../../../test/support/index.js'
import { STORE_GUARANTEES, storeBed } from './beds.js'
import { startRedis, type PrivateRedis } from './private-redis.js'
import { recordingLogger } from './recording-logger.js'

let server: PrivateRedis
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

storeSuite(
  { describe, it, expect },
  {
    name: 'RedisStore',
    guarantees: STORE_GUARANTEES,
    bed: async () => storeBed({ url: server.url }),
  },
)

describe('S2, I6: fences of locks', () => {
  it('grow although the clock has stepped back or all is lost, one by one and many in a tick', async () => {
    const prefix = 'fences'
    const logger = recordingLogger()
    const store = new RedisStore({ url: server.url, prefix, logger })
    const fenceOf = async (key: string): Promise<number> => {
      const lock = await store.acquireLockFenced(key, 10_000)
      if (!lock) throw new Error('It is held.')
      expect(await store.releaseLock(key, lock.token)).toBe(true)
      return lock.fence
    }
    const first = await fenceOf('a')
    // As if the fences so far had been given by a clock an hour ahead.
    const ahead = first + 3_600_000_000
    await server.admin.set(`${prefix}:{0}:fence`, String(ahead))
    expect(await fenceOf('a')).toBe(ahead + 1)
    const many = await Promise.all(Array.from({ length: 20 }, (_, n) => fenceOf(`b${n}`)))
    expect(many.toSorted((x, y) => x - y)).toEqual(Array.from({ length: 20 }, (_, n) => ahead + 2 + n))
    await server.admin.del(`${prefix}:{0}:fence`)
    const after = await fenceOf('a')
    expect(after).toBeGreaterThan(first)
    expect(await fenceOf('a')).toBeGreaterThan(after)
    // Of one tick, each is answered on its own.
    const [held, , again, foreign] = await Promise.all([
      store.acquireLockFenced('c', 10_000),
      store.acquireLockFenced('d', 10_000),
      store.acquireLockFenced('c', 10_000),
      store.releaseLock('c', 'a foreign token').catch(String),
    ])
    expect([held === null, again]).toEqual([false, null])
    expect(foreign).toContain('lock "c"')
    const lost = await store.acquireLockFenced('e', 1)
    await waitFor(async () => (await store.acquireLockFenced('e', 10_000)) !== null, {
      what: 'the lock is free again',
    })
    expect(await store.releaseLock('e', lost?.token ?? '')).toBe(false)
    expect(logger.lines).toMatchObject([{ level: 'warn', details: { lock: 'e' } }])
    expect(logger.text()).not.toContain('a foreign token')
    await store.close()
  })
})
