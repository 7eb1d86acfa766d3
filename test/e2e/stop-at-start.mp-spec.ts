/** A deploy that is taken back while Redis cannot be reached: replicas that still start end at once. */
import { describe, expect, it } from '@jest/globals'
import { randomUUID } from 'node:crypto'
import {
  freePort,
  sharedRedisUrl,
  spawnReplica,
  startFaultProxy,
  type Replica,
  type ReplicaExit,
} from '../support/index.js'

/** It takes a tenth of a second, loading aside; what it must not wait for is `drainMs`, 10 s, and a start's 30 s. */
const AT_ONCE_MS = 5000
const MINUTE = 60_000

const join = (kind: string, url: string, more: Record<string, string> = {}): Replica =>
  spawnReplica(new URL('./support/starting-bot.ts', import.meta.url), {
    ...{ KIND: kind, REDIS_URL: url, PREFIX: randomUUID() },
    ...more,
  })

/** A server that accepts connections and then says nothing. */
async function silentRedis() {
  const proxy = await startFaultProxy({ to: await sharedRedisUrl() })
  proxy.blackhole()
  return proxy
}

const PLACES: [string, () => Promise<string>][] = [
  ['nobody listens', async () => `redis://127.0.0.1:${await freePort()}`],
  ['somebody listens and says nothing', async () => (await silentRedis()).url],
]

/** Three seconds into the start: then it waits for sure. */
const waits = (replica: Replica) =>
  replica.next('warned', { where: ({ text }) => String(text).includes('does not answer yet') })

async function terminated(replica: Replica): Promise<ReplicaExit> {
  const began = performance.now()
  const exit = await replica.terminate()
  expect(performance.now() - began).toBeLessThan(AT_ONCE_MS)
  expect(replica.events.map(({ event }) => event)).not.toContain('unhandled')
  await replica.next('stopped')
  return exit
}

describe.each(PLACES)('N5: SIGTERM during a start, where %s', (_where, place) => {
  it(
    'a bot that waits for its store or coordinator ends by itself at once, its start rejects; a Nest application by the signal, after its hooks, or by its own handler, once that is through',
    async () => {
      const url = await place()
      const [store, coordinator, nest] = [join('store', url), join('coordinator', url), join('nest', url)]
      const own = join('own handler', url)
      await Promise.all([store, coordinator, nest, own].map(waits))
      for (const bot of [store, coordinator]) {
        expect(await terminated(bot)).toEqual({ code: 0, signal: null })
        expect(await bot.next('refused')).toMatchObject({ details: { why: 'stopped' } })
      }
      expect(await terminated(nest)).toEqual({ code: null, signal: 'SIGTERM' })
      expect(await terminated(own)).toEqual({ code: 0, signal: null })
      expect(await own.next('refused')).toMatchObject({ details: { why: 'stopped' } })
      await own.next('flushed')
    },
    MINUTE,
  )
})

describe('N5: a start after one that was stopped', () => {
  it(
    'works once Redis answers, whether it was the store or the coordinator that waited',
    async () => {
      const redis = await silentRedis()
      const bots = ['store', 'coordinator'].map((kind) => join(kind, redis.url, { AGAIN: '1' }))
      await Promise.all(bots.map(waits))
      const ends = bots.map((bot) => bot.terminate())
      await Promise.all(bots.map((bot) => bot.next('refused')))
      redis.heal()
      await Promise.all(bots.map((bot) => bot.next('started')))
      const ended = { code: 0, signal: null }
      expect(await Promise.all(ends)).toEqual([ended, ended])
    },
    MINUTE,
  )
})
