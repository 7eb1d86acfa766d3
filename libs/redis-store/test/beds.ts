/** Beds for the conformance suites on a real server: time passes by itself, each test has its own prefix. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Coordinator, CoordinatorOptions } from '@botmesh/core'
import type { CoordinationBed, StoreGuarantees } from '@botmesh/core/testing'
import { RedisStore, type RedisOptions } from '../src/index.js'
import { RedisCoordinator, type RedisCoordinatorOptions } from '../src/redis-coordinator.js'
import type { PrivateRedis } from './private-redis.js'

/** Where a bed's data is, and how all of it is lost. */
export interface Ground {
  place: RedisOptions
  wipe(): Promise<void>
}

export function groundOf(server: PrivateRedis): Ground {
  return { place: { url: server.url }, wipe: async () => void (await server.admin.flushall()) }
}

/** On a set of servers, which leave a loaded machine less time for each heartbeat. */
export const SEVERAL_SERVERS_LEASE_MS = 1500

/** Where no test waits for a lease to lapse: so long that none does, however busy the machine is. */
export const NEVER_LAPSING_LEASE_MS = 5000

/** What the store suites may expect of Redis, however many servers it is. */
export const STORE_GUARANTEES: StoreGuarantees = {
  ...{ conditional: true, state: true, journal: true, outbox: true, log: true, locks: true },
  ...{ coordinator: true, timers: true },
}

/** For the store suites. */
export function storeBed(place: RedisOptions): {
  store(): RedisStore
  coordinator(options?: CoordinatorOptions): Coordinator
  pass(ms: number): Promise<void>
  until<T>(promise: Promise<T>): Promise<T>
  close(): Promise<void>
} {
  const prefix = `t:${randomUUID()}`
  const stores: RedisStore[] = []
  const coordinators: Coordinator[] = []
  const store = (): RedisStore => {
    const one = new RedisStore({ ...place, prefix })
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
}

/** A coordinator whose process can "die". */
export class MortalCoordinator extends RedisCoordinator {
  async crash(): Promise<void> {
    await this.abandon()
  }
}

export function coordinationBed(
  ground: Ground,
  more: Partial<RedisCoordinatorOptions> & { leaseMs?: number } = {},
): CoordinationBed & { prefix: string } {
  const { leaseMs = 1000 } = more
  const prefix = `t:${randomUUID()}`
  const all: Coordinator[] = []
  let processes = 0
  const make = (options: RedisCoordinatorOptions): MortalCoordinator => {
    processes += 1
    const coordinator = new MortalCoordinator({
      ...ground.place,
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
    wipe: () => ground.wipe(),
    close: async () => {
      await Promise.all(all.map((one) => one.stop()))
    },
  }
}
