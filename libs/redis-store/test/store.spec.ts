/** The store suites on a real Redis. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Coordinator } from '@botmesh/core'
import { storeSuite } from '@botmesh/core/testing'
import { RedisStore } from '../src/index.js'
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
    bed: async () => {
      const prefix = `t:${randomUUID()}`
      const stores: RedisStore[] = []
      const coordinators: Coordinator[] = []
      const store = (): RedisStore => {
        const one = new RedisStore({ url: server.url, prefix })
        stores.push(one)
        return one
      }
      return {
        store,
        coordinator: (options = {}) => {
          const one = (stores[0] ?? store()).coordinator({ processId: randomUUID(), ...options })
          coordinators.push(one)
          return one
        },
        pass: (ms) => sleep(ms),
        until: (promise) => promise,
        close: async () => {
          await Promise.all(coordinators.map((one) => one.stop()))
          await Promise.all(stores.map((one) => one.close()))
        },
      }
    },
  },
)
