/** Beds for the conformance suites on a real server: time passes by itself, each test has its own prefix. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Coordinator } from '@botmesh/core'
import type { CoordinationBed } from '@botmesh/core/testing'
import { RedisCoordinator, type RedisCoordinatorOptions } from '../src/redis-coordinator.js'
import type { PrivateRedis } from './private-redis.js'

/** A coordinator whose process can "die". */
export class MortalCoordinator extends RedisCoordinator {
  async crash(): Promise<void> {
    await this.abandon()
  }
}

export function coordinationBed(
  server: PrivateRedis,
  more: Partial<RedisCoordinatorOptions> & { leaseMs?: number } = {},
): CoordinationBed & { prefix: string } {
  const { leaseMs = 1000 } = more
  const prefix = `t:${randomUUID()}`
  const all: Coordinator[] = []
  let processes = 0
  const make = (options: RedisCoordinatorOptions): MortalCoordinator => {
    processes += 1
    const coordinator = new MortalCoordinator({
      url: server.url,
      leaseMs,
      processId: `process-${processes}`,
      replicaId: `replica-${processes}`,
      ...more,
      ...options,
    })
    all.push(coordinator)
    return coordinator
  }
  return {
    prefix,
    leaseMs,
    coordinator: (options = {}) => make({ prefix, ...options }),
    stranger: () => make({ prefix: `${prefix}:x` }),
    crash: async (coordinator) => {
      if (coordinator instanceof MortalCoordinator) await coordinator.crash()
    },
    pass: (ms) => sleep(ms),
    until: async (promise, limitMs = 60_000) => {
      const limit = new AbortController()
      const late = sleep(limitMs, undefined, { signal: limit.signal }).then(() => {
        throw new Error(`Not settled within ${limitMs} ms.`)
      })
      try {
        return await Promise.race([promise, late])
      } finally {
        limit.abort()
        late.catch(() => undefined)
      }
    },
    elapsed: () => performance.now(),
    wipe: async () => {
      await server.admin.flushall()
    },
    close: async () => {
      await Promise.all(all.map((one) => one.stop()))
    },
  }
}
