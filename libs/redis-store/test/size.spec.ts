/** What is left behind, what a flood costs others, and what a chat may keep (scenarios 1, 7, 34; Z3). */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { CoordinationUnavailableError, type Turn } from '@botmesh/core'
import { RedisStore, type RedisCoordinator } from '../src/index.js'
import { startRedis, type PrivateRedis } from './private-redis.js'

/** Of a flood: so many messages of one chat wait, and so many of them are worked off. */
const IN_LINE = 20_000
const WORKED_OFF = 4_000

let server: PrivateRedis
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

async function take(coordinator: RedisCoordinator, key: string, dedupeId?: string): Promise<Turn> {
  const turn = await coordinator.turns.take(key, {
    waitMs: '60s',
    ...(dedupeId === undefined ? {} : { dedupeId }),
  })
  if (turn === 'duplicate') throw new Error('duplicate')
  return turn
}

async function mesh(
  { leaseMs = 1000, ...options }: { dedupeMs?: number; leaseMs?: number },
  play: (here: {
    prefix: string
    base: string
    make: () => RedisCoordinator
    store: RedisStore
  }) => Promise<void>,
): Promise<void> {
  const prefix = `size:${randomUUID()}`
  const store = new RedisStore({ url: server.url, prefix, ...options })
  const all: RedisCoordinator[] = []
  const make = (): RedisCoordinator => {
    const one = store.coordinator({ leaseMs, processId: randomUUID() })
    all.push(one)
    return one
  }
  try {
    await play({ prefix, base: `${encodeURIComponent(prefix)}:{0}:`, make, store })
  } finally {
    await Promise.all(all.map((one) => one.stop()))
    await store.close()
  }
}

describe('scenario 34: chats that spoke once', () => {
  it(
    'leave Redis as it was',
    () =>
      mesh({ dedupeMs: 2000 }, async ({ base, make }) => {
        const coordinator = make()
        await coordinator.start()
        const speak = async (from: number, to: number): Promise<void> => {
          let next = from
          const lane = async (): Promise<void> => {
            while (next < to) {
              const id = `m-${next}`
              const turn = await take(coordinator, `chat-${next++}`, id)
              await turn.commit({ inboundId: id })
            }
          }
          await Promise.all(Array.from({ length: 256 }, lane))
        }
        const fields = async (): Promise<number> => {
          let sum = 0
          for (const key of await server.admin.keys(`${base}t:*`)) sum += await server.admin.hlen(key)
          return sum
        }
        const forgotten = async (): Promise<void> => {
          const limit = performance.now() + 12_000
          while ((await fields()) > 10 && performance.now() < limit) await sleep(50)
          expect(await fields()).toBeLessThan(10)
        }
        const usedBytes = async (): Promise<number> => {
          // Redis' own statistics of each command ever called count as well.
          await server.admin.config('RESETSTAT')
          return Number(/used_memory:(\d+)/.exec(await server.admin.info('memory'))?.[1])
        }
        await speak(0, 1000)
        await forgotten()
        const before = await usedBytes()
        await speak(1000, 21_000)
        expect(await fields()).toBeGreaterThan(10_000)
        expect(await usedBytes()).toBeGreaterThan(2 * before)
        await forgotten()
        // What was removed is freed in the background.
        const limit = performance.now() + 5000
        while ((await usedBytes()) > 1.1 * before && performance.now() < limit) await sleep(50)
        expect((await usedBytes()) / before).toBeLessThan(1.1)
        const left = (await server.admin.keys(`${base}*`)).map((key) => key.slice(base.length))
        // The mesh, its floor, the live session and the window of now.
        const expected = /^(?:mesh|holders|sessions|[shp]:.*|t:\d+)$/
        expect(left.filter((key) => !expected.test(key))).toEqual([])
      }),
    30_000,
  )
})

describe('scenario 34: turns that wait', () => {
  it(
    'by the thousand cost one call a heartbeat, and none is overlooked',
    () =>
      mesh({ leaseMs: 3000 }, async ({ make }) => {
        const [holder, waiter] = [make(), make()]
        const chats = Array.from({ length: 4000 }, (_, n) => `chat-${n}`)
        const held = await Promise.all(chats.map((chat) => take(holder, chat)))
        const waiting = chats.map((chat) => take(waiter, chat))
        // Calls are answered in the order in which they were made: those before it wait by now.
        await (await take(waiter, 'another')).release()
        const callsOf = async (ms: number): Promise<number> => {
          await server.admin.config('RESETSTAT')
          await sleep(ms)
          const stats = await server.admin.info('commandstats')
          return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
        }
        // Until its first push is known to arrive a replica asks about all of them.
        const limit = performance.now() + 15_000
        while ((await callsOf(500)) > 4 && performance.now() < limit);
        // Two replicas, a beat a second; asking about all of them in every beat would take two calls more each.
        expect(await callsOf(3000)).toBeLessThanOrEqual(2 * 4)
        await Promise.all(held.map((turn) => turn.release()))
        const granted = await Promise.all(waiting)
        await Promise.all(granted.map((turn) => turn.release()))
      }),
    60_000,
  )
})

describe('scenario 7: a flood in one chat', () => {
  it(
    'leaves the latency of other chats flat, is worked off in order, and ends at once with its replica',
    () =>
      mesh({}, async ({ make }) => {
        const [a, b] = [make(), make()]
        const latency = async (): Promise<number> => {
          const times: number[] = []
          for (let n = 0; n < 40; n += 1) {
            const began = performance.now()
            await (await take(b, `quiet-${n}`)).release()
            times.push(performance.now() - began)
          }
          return times.sort((x, y) => x - y)[20] ?? Infinity
        }
        const before = await latency()
        const held = await take(a, 'flood')
        const served: number[] = []
        // Worked off one after the other, each for a round trip: of all of them that is minutes on a busy machine.
        let enough = (): void => undefined
        const workedOff = new Promise<void>((resolve) => (enough = resolve))
        const flood = Array.from({ length: IN_LINE }, async (_, n) => {
          const turn = await take(a, 'flood')
          if (served.push(n) === WORKED_OFF) enough()
          await turn.release()
        })
        const outcomes = Promise.allSettled(flood)
        await sleep(1500)
        const during = await latency()
        await held.release()
        await Promise.race([workedOff, Promise.all(flood)])
        const stoppedAt = performance.now()
        await a.stop()
        const rejected = (await outcomes).filter((one) => one.status === 'rejected')
        expect(performance.now() - stoppedAt).toBeLessThan(5000)
        const reasons = rejected.map(({ reason }): unknown =>
          reason instanceof CoordinationUnavailableError ? reason.details.why : reason,
        )
        expect(during).toBeLessThan(before * 8 + 15)
        expect(served).toEqual(served.map((_, n) => n))
        expect(served.length).toBeGreaterThanOrEqual(WORKED_OFF)
        expect(served.length).toBeLessThan(IN_LINE)
        expect(reasons).toEqual(Array.from({ length: IN_LINE - served.length }, () => 'stopped'))
      }),
    60_000,
  )
})

describe('scenario 1: a release at the moment another replica queues', () => {
  it(
    'never leaves a ticket waiting, thousands of times',
    () =>
      mesh({}, async ({ make }) => {
        const replicas = [make(), make(), make()]
        await Promise.all(replicas.map((one) => one.start()))
        let inside = 0
        let overlaps = 0
        let longest = 0
        const hammer = async (coordinator: RedisCoordinator): Promise<void> => {
          for (let n = 0; n < 1000; n += 1) {
            const began = performance.now()
            const turn = await take(coordinator, 'k')
            longest = Math.max(longest, performance.now() - began)
            inside += 1
            if (inside !== 1) overlaps += 1
            inside -= 1
            await turn.release()
          }
        }
        await Promise.all(replicas.map(hammer))
        expect(overlaps).toBe(0)
        // A ticket that is overlooked waits for the next heartbeat, a third of a second.
        expect(longest).toBeLessThan(320)
      }),
    60_000,
  )
})

describe('Z3: the committed ids of one chat', () => {
  it('are bounded, the latest are kept, and all are forgotten after dedupeMs', () =>
    mesh({ dedupeMs: 2000 }, async ({ make, store }) => {
      const coordinator = make()
      const turn = await take(coordinator, 'k', 'first')
      await turn.commit({ inboundId: 'first' })
      expect(await coordinator.turns.take('k', { dedupeId: 'first' })).toBe('duplicate')
      await sleep(2100)
      expect(await store.isCommitted('k', 'first')).toBe(false)
      await (await take(coordinator, 'k', 'first')).release()
    }))

  it(
    'of a chat that never stops do not fill Redis',
    () =>
      mesh({ dedupeMs: 3_600_000 }, async ({ make, base, store }) => {
        const coordinator = make()
        for (let n = 0; n < 3000; n += 1) {
          await (await take(coordinator, 'k', `m${n}`)).commit({ inboundId: `m${n}` })
        }
        const [window = ''] = await server.admin.keys(`${base}t:*`)
        expect(await server.admin.hlen(window)).toBeLessThan(2100)
        for (const n of [2999, 2500, 2100]) expect(await store.isCommitted('k', `m${n}`)).toBe(true)
        expect(await store.isCommitted('k', 'm1500')).toBe(false)
      }),
    60_000,
  )
})

describe('a line full of the dead', () => {
  it('T8: who joins a line behind a holder that died stands behind those who waited already', () =>
    mesh({ leaseMs: 15_000 }, async ({ base, make }) => {
      const [holder, waiter, late] = [make(), make(), make()]
      await Promise.all([holder.start(), waiter.start(), late.start()])
      await take(holder, 'k')
      let inLine = (): void => undefined
      const queued = new Promise<void>((resolve) => (inLine = resolve))
      const waits = waiter.turns.take('k', { waitMs: '60s', onTicket: inLine })
      await queued
      await server.admin.del(`${base}s:${holder.incarnation}`)
      const lates = late.turns.take('k', { waitMs: '60s' })
      const first = await waits
      if (first === 'duplicate') throw new Error('duplicate')
      expect(first.previousHolder).toBe(holder.incarnation)
      await first.release()
      const second = await lates
      if (second === 'duplicate') throw new Error('duplicate')
      expect(second.previousHolder).toBe(waiter.incarnation)
      await second.release()
    }))

  it('T8: more dead tickets than one command takes are passed over by one release', () =>
    // A lease that outlives the planting: nine thousand writes keep this process from its heartbeat.
    mesh({ leaseMs: 15_000 }, async ({ base, make }) => {
      const [holder, waiter] = [make(), make()]
      await Promise.all([holder.start(), waiter.start()])
      const first = await take(holder, 'k')
      let inLine = (): void => undefined
      const waits = new Promise<void>((resolve) => (inLine = resolve))
      const granted = waiter.turns.take('k', { waitMs: '60s', onTicket: inLine })
      await waits
      const dead = Array.from({ length: 9000 }, (_, n) => `gone:${n.toString(36)}`)
      await server.admin.lpush(`${base}q:k`, ...dead.map((ticket) => `${ticket} `))
      for (const ticket of dead) server.admin.hset(`${base}w:gone`, ticket, 'k ').catch(() => undefined)
      // Whoever releases alone looks for one ticket only; two in one call go the general way.
      const other = await take(holder, 'other')
      await Promise.all([first.release(), other.release()])
      const turn = await granted
      if (turn === 'duplicate') throw new Error('duplicate')
      expect(turn.previousHolder).toBe(holder.incarnation)
      expect(await server.admin.exists(`${base}w:gone`, `${base}q:k`)).toBe(0)
      await turn.release()
    }))
})
