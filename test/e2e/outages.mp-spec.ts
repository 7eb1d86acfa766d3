/** A Redis that loses its subscribers, comes back empty, or cannot be reached. Each test has one of its own. */
import { describe, expect, it } from '@jest/globals'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { onTestEnd, startFaultProxy, startRedis, waitFor, type ReplicaEvent } from '../support/index.js'
import { Crew, type BotReplica } from './support/bots.js'

const MINUTE = 60_000

function client(url: string): Redis {
  const redis = new Redis(url, { retryStrategy: () => 50 })
  redis.on('error', () => undefined) // It is killed on purpose.
  onTestEnd(() => redis.disconnect())
  return redis
}

const at = (event: ReplicaEvent): number => Number(event['at'])

describe('scenario 8, Z1: the connections that grants are pushed on are cut again and again', () => {
  const CHATS = 16
  const POLL_MS = 400
  let round = 0

  /** In each chat `from` works while a message waits at `to`. @returns how long each hand-off took. */
  async function handOffs(crew: Crew, from: BotReplica, to: BotReplica): Promise<number[]> {
    round += 1
    const chats = Array.from({ length: CHATS }, (_, n) => `${round}-${n}`)
    for (const chat of chats)
      from.write(chat, `slow ${700 + Number(chat.split('-')[1]) * 13}`, `first-${chat}`)
    await Promise.all(chats.map((chat) => from.of('handling', `first-${chat}`)))
    for (const chat of chats) to.write(chat, 'next', `next-${chat}`)
    return Promise.all(
      chats.map(async (chat) => {
        const [ended, begun] = await Promise.all([
          from.of('handled', `first-${chat}`),
          to.of('handling', `next-${chat}`),
        ])
        return at(begun) - at(ended)
      }),
    )
  }

  const median = (values: number[]): number => values.toSorted((x, y) => x - y)[values.length >> 1] ?? 0

  /** The best median of a few rounds: on a machine that is busy with other things a process may stand still. */
  async function fastest(crew: Crew, from: BotReplica, to: BotReplica): Promise<number> {
    let best = Infinity
    for (let left = 4; left > 0 && best >= POLL_MS / 8; left -= 1)
      best = Math.min(best, median(await handOffs(crew, from, to)))
    return best
  }

  it(
    'hand-offs stay within the fall-back, none is stuck; then they are fast again and no channel is left',
    async () => {
      const redis = await startRedis()
      const server = client(redis.url)
      const leaseMs = 3000
      const crew = new Crew({ redisUrl: redis.url, leaseMs, env: { MAX_POLL_MS: String(POLL_MS) } })
      const [a, b] = await Promise.all([crew.join('a'), crew.join('b')])
      const channels = async () => (await server.call('PUBSUB', 'CHANNELS')) as string[]
      const both = async () => (await channels()).length === 2
      await waitFor(both, { what: 'each replica listens to a channel of its own' })
      const before = await channels()
      expect(await fastest(crew, a, b)).toBeLessThan(POLL_MS / 8)

      let cutting = true
      let connections = 0
      const cut = async () => {
        for (; cutting; await delay(10))
          connections += Number(await server.call('CLIENT', 'KILL', 'TYPE', 'pubsub'))
      }
      const cuts = cut()
      const polled = [...(await handOffs(crew, b, a)), ...(await handOffs(crew, a, b))]
      expect(Math.max(...polled)).toBeLessThan(POLL_MS + leaseMs / 3)
      cutting = false
      await cuts
      // Each replica's more than once: they came back and were cut again.
      expect(connections).toBeGreaterThan(4)

      await waitFor(both, { what: 'both listen again' })
      expect(await fastest(crew, b, a)).toBeLessThan(POLL_MS / 8)
      expect((await channels()).toSorted()).toEqual(before.toSorted())
      const listeners = (await server.call('PUBSUB', 'NUMSUB', ...before)) as (string | number)[]
      expect(listeners.filter((_, index) => index % 2 === 1)).toEqual([1, 1])
      expect(crew.told('lease-lost')).toEqual([])
      expect(crew.told('error')).toEqual([])
      expect(await crew.disband()).toEqual([])
      expect(await channels()).toEqual([])
    },
    MINUTE,
  )
})

describe('scenario 9, L4: Redis restarts empty', () => {
  it(
    'turns and leaderships end as lost, the same processes come back under new incarnations, fences are higher',
    async () => {
      const redis = await startRedis()
      const crew = new Crew({ redisUrl: redis.url, leaseMs: 1500, env: { LEAD: 'job:report' } })
      const [a, b] = await Promise.all([crew.join('a'), crew.join('b')])
      const before = await Promise.race([a.next('leader'), b.next('leader')])
      a.write('at-a', 'slow 60000', 'm1')
      b.write('at-b', 'slow 60000', 'm2')
      const held = await Promise.all([a.of('handling', 'm1'), b.of('handling', 'm2')])
      const first = await Promise.all([a.status(), b.status()])
      await redis.restart()
      const lost = await Promise.all([a.next('lease-lost'), b.next('lease-lost')])
      expect(lost.map(({ key }) => key)).toEqual(['line%3Ae2e/at-a', 'line%3Ae2e/at-b'])
      await waitFor(() => crew.told('follower', ({ reason }) => reason === 'lost').length === 1, {
        what: 'the leadership ends as lost',
      })
      const led = await waitFor(() => crew.told('leader')[1], { what: 'somebody leads again' })
      expect(Number(led['fence'])).toBeGreaterThan(Number(before['fence']))
      b.write('at-a', 'next', 'm3')
      a.write('at-b', 'next', 'm4')
      const next = await Promise.all([b.of('handling', 'm3'), a.of('handling', 'm4')])
      for (const { fence } of next)
        expect(Number(fence)).toBeGreaterThan(Math.max(...held.map((one) => Number(one['fence']))))
      await crew.hears('at-a', ['echo next'])
      const second = await Promise.all([a.status(), b.status()])
      expect(second.map(({ status, ready }) => ({ status, ready }))).toEqual([
        { status: 'live', ready: true },
        { status: 'live', ready: true },
      ])
      expect(second.map((one) => one['incarnation'])).not.toEqual(first.map((one) => one['incarnation']))
      expect(crew.told('leader')).toHaveLength(2)
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )
})

describe('scenario 10, T6: Redis is unreachable for longer than a lease', () => {
  const leaseMs = 1500
  const turnWaitMs = 2000

  it.each([
    ['nothing is answered', 'blackhole'],
    ['connections are refused', 'cut'],
  ] as const)(
    '%s: held turns end as lost, new messages are reported in time; later all is well and nothing has leaked',
    async (_what, fault) => {
      const redis = await startRedis()
      const proxy = await startFaultProxy({ to: redis.url })
      const crew = new Crew({ redisUrl: redis.url, leaseMs, env: { TURN_WAIT_MS: String(turnWaitMs) } })
      const [a, b] = await Promise.all([crew.join('a', { REDIS_URL: proxy.url }), crew.join('b')])
      a.write('warm', 'hi', 'm0')
      await a.of('handled', 'm0')
      const connections = proxy.connections()
      const { resources, incarnation } = await a.status()
      a.write('held', 'slow 60000', 'm1')
      const { fence } = await a.of('handling', 'm1')

      proxy[fault]()
      const cutOff = performance.now()
      expect(await a.next('lease-lost')).toMatchObject({ key: 'line%3Ae2e/held', reason: 'frozen' })
      expect(performance.now() - cutOff).toBeLessThan(leaseMs + 250)
      a.write('new', 'hello', 'm2')
      const asked = performance.now()
      const error = await a.next('error')
      expect(performance.now() - asked).toBeLessThan(turnWaitMs + 500)
      expect(error).toMatchObject({ code: 'COORDINATION_UNAVAILABLE' })
      expect(await a.of('refused', 'm2')).toMatchObject({ code: 'COORDINATION_UNAVAILABLE' })
      // The other replica can reach it and is not held up.
      b.write('held', 'next', 'm3')
      const next = await b.of('handling', 'm3')
      expect(Number(next['fence'])).toBeGreaterThan(Number(fence))
      expect(await a.status()).toMatchObject({ status: 'unreachable', ready: false })

      proxy.heal()
      await waitFor(async () => (await a.status())['status'] === 'live', { what: 'a is live again' })
      // The platform delivers again what was refused.
      a.write('new', 'hello', 'm2')
      await crew.hears('new', ['echo hello'])
      await crew.hears('held', ['echo next'])
      await waitFor(() => proxy.connections() === connections, {
        what: `${connections} connections again; there are ${proxy.connections()}`,
      })
      const after = await a.status()
      expect(after['incarnation']).not.toBe(incarnation)
      expect(Number(after['resources'])).toBeLessThanOrEqual(Number(resources))
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )
})
