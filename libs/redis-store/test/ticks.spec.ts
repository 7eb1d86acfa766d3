/** Which calls go together: those of one tick of the event loop, whichever of its callbacks made them. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Turn } from '@botmesh/core'
import { RedisCoordinator, RedisStore } from '../src/index.js'
import { startRedis, type PrivateRedis } from './private-redis.js'

let server: PrivateRedis
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** Calls each of `acts` in a callback of its own, all in one tick: timers that are due together fire together. */
async function inOneTick<T>(acts: (() => Promise<T>)[]): Promise<T[]> {
  const all = acts.map(
    (act) =>
      new Promise<T>((resolve, reject) => {
        setTimeout(() => void act().then(resolve, reject), 1)
      }),
  )
  const until = performance.now() + 10
  while (performance.now() < until);
  return Promise.all(all)
}

async function scriptCalls(): Promise<number> {
  const stats = await server.admin.info('commandstats')
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
}

const chats = Array.from({ length: 20 }, (_, n) => `k${n}`)

describe('calls of one tick', () => {
  it('Z2: takes and releases of many callbacks share a call', async () => {
    const coordinator = new RedisCoordinator({ url: server.url, prefix: 'ticks' })
    await coordinator.start()
    try {
      const before = await scriptCalls()
      const turns = await inOneTick(chats.map((chat) => () => coordinator.turns.take(chat)))
      const taken = await scriptCalls()
      await inOneTick(turns.map((turn) => () => (turn as Turn).release()))
      expect([taken - before, (await scriptCalls()) - taken]).toEqual([1, 1])
    } finally {
      await coordinator.stop()
    }
  })

  it('S2: so do locks', async () => {
    const store = new RedisStore({ url: server.url, prefix: 'ticks' })
    try {
      await store.open()
      const before = await scriptCalls()
      const locks = await inOneTick(chats.map((name) => () => store.acquireLockFenced(name, 10_000)))
      expect(locks).not.toContain(null)
      expect((await scriptCalls()) - before).toBe(1)
    } finally {
      await store.close()
    }
  })

  it('S2: what was asked for in the tick in which the store is closed is refused, and does not open it again', async () => {
    const store = new RedisStore({ url: server.url, prefix: 'ticks' })
    await store.open()
    const [lock] = await inOneTick<unknown>([
      () => store.acquireLockFenced('k', 10_000).catch((error: unknown) => error),
      () => store.close(),
    ])
    expect(lock).toMatchObject({ code: 'STORE', message: expect.stringContaining('closed') })
    expect(store.isOpen).toBe(false)
    expect(await server.admin.exists('ticks:{0}:lock:lock:k')).toBe(0)
  })
})
