/** `RedisCoordinator`: the shared client logic over Redis. */
import {
  ConfigError,
  COORDINATOR_OPTIONS,
  SessionCoordinator,
  parseDuration,
  refuseUnknownOptions,
  type CoordinatorOptions,
  type Duration,
} from '@botmesh/core'
import { ShardedPlace } from './layout.js'
import { RedisBackend } from './redis-backend.js'
import { PLACE_OPTIONS, identityOf, readPlace, type RedisOptions } from './redis-options.js'
import { RedisShards } from './redis-shards.js'
import type { ScriptPatch } from './scripts.js'

export interface RedisCoordinatorOptions extends RedisOptions, CoordinatorOptions {
  /** How long a committed message id is a duplicate (Z3), and the trace of an idle chat is kept. Default 24 h. The
   * same on every replica. */
  dedupeMs?: Duration
  /** Longest queue of one chat; a take beyond it rejects with `overflow`. Default 100,000. */
  maxWaitingPerChat?: number
}

export const DEFAULT_DEDUPE = '1d'
export const DEFAULT_WAITING = 100_000
export const IDS_PER_CHAT = 1000

/** Names of the options that are Redis's own. */
export const REDIS_OPTIONS = [...PLACE_OPTIONS, 'dedupeMs', 'maxWaitingPerChat'] as const

/** What a store passes on, and tests. */
export interface CoordinatorWiring {
  shares?: (store: unknown) => boolean
  patch?: ScriptPatch | undefined
}

export const WIRING = Symbol('botmesh.redis.wiring')

/** An object that keeps its data in a certain place: what `sharesBackendWith` compares. */
export interface Placed {
  readonly place: string
}

function isPlaced(store: unknown): store is Placed {
  return typeof store === 'object' && store !== null && 'place' in store && typeof store.place === 'string'
}

export class RedisCoordinator extends SessionCoordinator {
  /** @throws ConfigError for an option that is unknown, missing or impossible. */
  constructor(options: RedisCoordinatorOptions & { [WIRING]?: CoordinatorWiring }) {
    refuseUnknownOptions('RedisCoordinator', options, [...REDIS_OPTIONS, ...COORDINATOR_OPTIONS])
    const rest: Record<string, unknown> = {}
    for (const name of COORDINATOR_OPTIONS) if (options[name] !== undefined) rest[name] = options[name]
    const { dedupeMs, maxWaitingPerChat, [WIRING]: wiring = {} } = options
    const windowMs = parseDuration('dedupeMs', dedupeMs ?? DEFAULT_DEDUPE, { minMs: 2000 })
    const settings = readPlace('RedisCoordinator', options, windowMs)
    const identity = identityOf(settings)
    const more = {
      place: new ShardedPlace(settings),
      waitingPerChat: readWaiting(maxWaitingPerChat),
      idsPerChat: IDS_PER_CHAT,
      shares: wiring.shares ?? ((store: unknown) => isPlaced(store) && store.place === identity),
      patch: wiring.patch,
    }
    const backend =
      settings.layout === 'cluster' ? new RedisShards(more) : new RedisBackend({ ...more, shard: 0 })
    super({ ...rest, backend })
  }
}

export function readWaiting(value: unknown = DEFAULT_WAITING): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return value
  const accepted = 'a whole number from 1'
  throw new ConfigError(`Option "maxWaitingPerChat" is ${String(value)}; accepted: ${accepted}.`, {
    option: 'maxWaitingPerChat',
    value,
    accepted,
  })
}
