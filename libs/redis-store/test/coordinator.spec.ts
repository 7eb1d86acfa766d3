/** The coordinator suites on a real Redis. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { coordinatorSuite } from '@botmesh/core/testing'
import { coordinationBed, groundOf } from './beds.js'
import { startRedis, type PrivateRedis } from './private-redis.js'

let server: PrivateRedis
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

coordinatorSuite(
  { describe, it, expect },
  {
    name: 'RedisCoordinator',
    guarantees: { commits: true, pushes: true },
    bed: async () => coordinationBed(groundOf(server)),
    rounds: 100,
  },
)
