/** The store suites on a real Redis. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { storeSuite } from '@botmesh/core/testing'
import { storeBed } from './beds.js'
import { startRedis, type PrivateRedis } from './private-redis.js'

let server: PrivateRedis
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

storeSuite(
  { describe, it, expect },
  {
    name: 'RedisStore',
    guarantees: {
      conditional: true,
      state: true,
      journal: true,
      outbox: true,
      log: true,
      locks: true,
      coordinator: true,
      timers: true,
    },
    bed: async () => storeBed({ url: server.url }),
  },
)
