/** The suites of the store and the coordinator on a primary with a replica that three Sentinels watch (S3). */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { coordinatorSuite, storeSuite } from '@botmesh/core/testing'
import { Redis } from 'ioredis'
import { ConfigError } from '@botmesh/core'
import { onTestEnd, startRedisSentinels, type PrivateSentinels } from '../../../test/support/index.js'
import { RedisCoordinator, RedisStore, type RedisOptions } from '../src/index.js'
import { SEVERAL_SERVERS_LEASE_MS, STORE_GUARANTEES, coordinationBed, storeBed, type Ground } from './beds.js'

let set: PrivateSentinels
let admin: Redis
const place: RedisOptions = {}
const ground: Ground = { place, wipe: async () => void (await admin.flushall()) }
beforeAll(async () => {
  set = await startRedisSentinels()
  place.sentinels = set.sentinels
  place.name = set.name
  admin = new Redis({ sentinels: [...set.sentinels], name: set.name })
  admin.on('error', () => undefined)
  onTestEnd(() => admin.disconnect())
}, 60_000)

coordinatorSuite(
  { describe, it, expect },
  {
    name: 'RedisCoordinator behind Sentinels',
    guarantees: { commits: true, pushes: true },
    bed: async () => coordinationBed(ground, { leaseMs: SEVERAL_SERVERS_LEASE_MS }),
    rounds: 40,
  },
)

storeSuite(
  { describe, it, expect },
  {
    name: 'RedisStore behind Sentinels',
    guarantees: STORE_GUARANTEES,
    bed: async () => storeBed(place),
  },
)

async function rejection(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise
  } catch (error) {
    if (error instanceof Error) return error
  }
  throw new Error('It resolved.')
}

describe('C2, S3: how the Sentinels are given', () => {
  it('a client that finds its server through Sentinels lends its settings', async () => {
    const prefix = `sentinel:${randomUUID()}`
    const store = new RedisStore({ client: admin, prefix })
    const coordinator = store.coordinator({ leaseMs: 1000 })
    const turn = await coordinator.turns.take('k')
    if (turn === 'duplicate') throw new Error('duplicate')
    await turn.commit({ inboundId: 'm' })
    expect(await store.isCommitted('k', 'm')).toBe(true)
    await coordinator.stop()
    await store.close()
    expect(admin.status).toBe('ready')
  })

  it('S3, bad input: no name, no Sentinel, and layout cluster are refused by name', () => {
    const refused = (options: object): string => {
      try {
        return new RedisStore(options).place
      } catch (error) {
        expect(error).toBeInstanceOf(ConfigError)
        return (error as Error).message
      }
    }
    expect(refused({ sentinels: set.sentinels })).toMatch(/"name"/)
    expect(refused({ sentinels: [], name: 'x' })).toMatch(/"sentinels" is not a list/)
    expect(refused({ sentinels: set.sentinels, name: 'x', layout: 'cluster' })).toMatch(/layout/)
  })

  it('an unknown name ends with an error that says what was asked for and whom', async () => {
    const coordinator = new RedisCoordinator({ ...place, name: 'nobody', startTimeoutMs: 500 })
    const error = await rejection(coordinator.start())
    expect(error.message).toMatch(/primary "nobody" of the Sentinels at 127\.0\.0\.1:\d+/)
    await coordinator.stop()
  })
})
