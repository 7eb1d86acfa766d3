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
import { ShardKeys } from './keys.js'
import { RedisBackend } from './redis-backend.js'
import { readTarget, readLayout, readPrefix, identityOf, type RedisOptions } from './redis-options.js'
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
export const REDIS_OPTIONS = ['url', 'client', 'prefix', 'layout', 'dedupeMs', 'maxWaitingPerChat'] as const

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
    const {
      url,
      client,
      prefix,
      layout,
      dedupeMs,
      maxWaitingPerChat,
      [WIRING]: wiring = {},
      ...rest
    } = options
    const target = readTarget('RedisCoordinator', options)
    const named = readPrefix(prefix)
    readLayout(layout)
    const windowMs = parseDuration('dedupeMs', dedupeMs ?? DEFAULT_DEDUPE, { minMs: 2000 })
    const place = identityOf(target, named, windowMs)
    const backend = new RedisBackend({
      target,
      keys: new ShardKeys(named),
      windowMs,
      waitingPerChat: readWaiting(maxWaitingPerChat),
      idsPerChat: IDS_PER_CHAT,
      shares: wiring.shares ?? ((store) => isPlaced(store) && store.place === place),
      patch: wiring.patch,
    })
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
