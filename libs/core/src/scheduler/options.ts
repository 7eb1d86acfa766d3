/** Options of the scheduler and of its tasks, and their checks (J1). */
import type { Coordinator, Duration } from '../contracts/coordinator.js'
import { ConfigError } from '../contracts/errors.js'
import type { LockStore } from '../contracts/lock-store.js'
import { describeValue, parseDuration } from '../kernel/duration.js'
import { refuseUnknownOptions, requireOneOf, requireText } from '../kernel/options.js'

/** Fenced leases by name: what `store.leases()` gives. */
export type Leases = Pick<LockStore, 'acquireLockFenced' | 'renewLock' | 'releaseLock'>

/**
 * What becomes of occurrences that nobody ran in time, that is, within `graceMs`:
 * - `'skip'`: left out.
 * - `'last'`: the latest one is run, unless there is a later one that is in time.
 * - `'all'`: all are run, in order, but no more than the latest `maxCatchUp`.
 */
export type CatchUp = 'skip' | 'last' | 'all'

/** How a durable task deals with what goes wrong. */
export interface DurableTaskOptions {
  /** Default `'last'`. */
  catchUp?: CatchUp
  /**
   * How late an occurrence may be and still count as in time: each of them is run, whatever `catchUp` says (of an
   * interval the latest only, unless `'all'`). Keep it above the time of a take-over, one lease and a little. Default 1
   * minute or three leases, whichever is more.
   */
  graceMs?: Duration
  /** For `'all'`. Default 100. */
  maxCatchUp?: number
  /** Failed or abandoned attempts before an occurrence is given up. Default 5. */
  maxAttempts?: number
  /** First pause before a further attempt; doubles up to `maxRetryMs`. Default 1 s. */
  retryMs?: Duration
  /** Default 1 minute. */
  maxRetryMs?: Duration
}

export interface SchedulerOptions extends DurableTaskOptions {
  /**
   * Who leads. Default: the bot's coordinator, without coordination `store.leases()`. All replicas must have the same:
   * change it while none runs.
   */
  lease?: Leases | Coordinator
  /** How long a lease of `Leases` lasts without renewal. Default 15 s; a coordinator has its own. */
  leaseMs?: Duration
  /** Replicas with the same name elect one leader and share what has been done. Default: the provider's id. */
  name?: string
}

/** What a task says for itself. */
export interface TaskOptions extends DurableTaskOptions {
  /** Names a durable task (J1): the same on every replica and in every release. Needs `scheduler`. */
  id?: string
  /** IANA time zone of a cron expression, such as `Europe/Madrid`. Default: the process's. */
  timeZone?: string
}

/** Checked, in milliseconds. */
export interface TaskPolicy {
  catchUp: CatchUp
  graceMs: number
  maxCatchUp: number
  maxAttempts: number
  retryMs: number
  maxRetryMs: number
}

export interface ResolvedScheduler {
  name: string
  lease: { kind: 'coordinator'; coordinator: Coordinator } | { kind: 'leases'; leases: Leases }
  leaseMs: number
  policy: TaskPolicy
}

const POLICY = ['catchUp', 'graceMs', 'maxCatchUp', 'maxAttempts', 'retryMs', 'maxRetryMs'] as const
const TASK = ['id', 'timeZone', ...POLICY]
const MINUTE = 60_000
const GRACE_LEASES = 3

interface Surroundings {
  coordinator: Coordinator | null
  store: { readonly kind: string; setCheckpointIf?: unknown; leases?: unknown }
  providerId: string
}

/** @returns null without a scheduler. @throws ConfigError */
export function resolveScheduler(given: unknown, around: Surroundings): ResolvedScheduler | null {
  if (given === undefined || given === false) return null
  if (given !== true && (typeof given !== 'object' || given === null || Array.isArray(given))) {
    throw refuse('scheduler', given, 'true, or { name, lease, catchUp, … }')
  }
  const options: SchedulerOptions = given === true ? {} : given
  refuseUnknownOptions('scheduler', options, ['lease', 'leaseMs', 'name', ...POLICY])
  const { store, providerId } = around
  if (typeof store.setCheckpointIf !== 'function') {
    throw new ConfigError(
      `Option "scheduler" needs a store with setCheckpointIf, where occurrences are claimed and remembered; the ${store.kind} store has none. Use RedisStore or another built-in store.`,
      { option: 'scheduler' },
    )
  }
  const lease = leaseOf(options.lease, around)
  const own = parseDuration('scheduler.leaseMs', options.leaseMs ?? '15s', { minMs: 1000 })
  const leaseMs = lease.kind === 'coordinator' ? lease.coordinator.leaseMs : own
  const base: TaskPolicy = {
    catchUp: 'last',
    graceMs: Math.max(MINUTE, GRACE_LEASES * leaseMs),
    maxCatchUp: 100,
    maxAttempts: 5,
    retryMs: 1000,
    maxRetryMs: MINUTE,
  }
  return {
    name: options.name === undefined ? providerId : requireText('scheduler.name', options.name),
    lease,
    leaseMs,
    policy: resolvePolicy('scheduler.', options, base),
  }
}

function leaseOf(given: unknown, { coordinator, store }: Surroundings): ResolvedScheduler['lease'] {
  if (given !== undefined) {
    if (isCoordinator(given)) return { kind: 'coordinator', coordinator: given }
    if (isLeases(given)) return { kind: 'leases', leases: given }
    throw refuse('scheduler.lease', given, 'store.leases(), or a coordinator')
  }
  if (coordinator !== null) return { kind: 'coordinator', coordinator }
  const leases: unknown = typeof store.leases === 'function' ? (store.leases as () => unknown)() : undefined
  if (isLeases(leases)) return { kind: 'leases', leases }
  throw new ConfigError(
    `Option "scheduler" needs somebody who decides which replica runs a task: set coordination, or scheduler.lease; the ${store.kind} store has no leases().`,
    { option: 'scheduler.lease', accepted: 'store.leases(), or a coordinator' },
  )
}

function isLeases(value: unknown): value is Leases {
  return has(value, ['acquireLockFenced', 'renewLock', 'releaseLock'])
}

function isCoordinator(value: unknown): value is Coordinator {
  return has(value, ['tryLead', 'start', 'stop']) && has((value as Coordinator).elections, ['campaign'])
}

function has(value: unknown, methods: string[]): boolean {
  if (typeof value !== 'object' || value === null) return false
  return methods.every((method) => typeof Reflect.get(value, method) === 'function')
}

/** @throws ConfigError */
export function checkTaskOptions(options: TaskOptions): void {
  refuseUnknownOptions('A task', options, TASK)
  if (options.id !== undefined) return void requireText('id', options.id)
  const durable = POLICY.find((name) => options[name] !== undefined)
  if (durable === undefined) return
  throw new ConfigError(
    `Option "${durable}" of a task is for durable ones: give the task an \`id\`, and the bot a \`scheduler\`.`,
    { option: durable },
  )
}

/** What a task says, else what the scheduler says. @throws ConfigError */
export function resolvePolicy(prefix: string, given: DurableTaskOptions, base: TaskPolicy): TaskPolicy {
  const duration = (name: 'graceMs' | 'retryMs' | 'maxRetryMs', minMs: number, fallback: number) =>
    parseDuration(`${prefix}${name}`, given[name] ?? fallback, { minMs })
  const count = (name: 'maxCatchUp' | 'maxAttempts') => {
    const value: unknown = given[name] ?? base[name]
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return value
    throw refuse(`${prefix}${name}`, value, 'a whole number from 1')
  }
  const retryMs = duration('retryMs', 1, base.retryMs)
  return {
    catchUp: requireOneOf(`${prefix}catchUp`, given.catchUp ?? base.catchUp, ['skip', 'last', 'all']),
    graceMs: duration('graceMs', 0, base.graceMs),
    maxCatchUp: count('maxCatchUp'),
    maxAttempts: count('maxAttempts'),
    retryMs,
    maxRetryMs: duration('maxRetryMs', retryMs, Math.max(base.maxRetryMs, retryMs)),
  }
}

function refuse(option: string, value: unknown, accepted: string): ConfigError {
  const message = `Option "${option}" is ${describeValue(value)}; accepted: ${accepted}.`
  return new ConfigError(message, { option, value, accepted })
}
