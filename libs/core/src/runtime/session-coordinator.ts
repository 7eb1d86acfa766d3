/**
 * `Coordinator` over a backend: what `MemoryCoordinator`, `RedisCoordinator` and coordinators of driver authors are.
 * Options are checked here; the work is done per shard (`session-shard.ts`).
 */
import type { Clock, Random } from '../contracts/clock.js'
import {
  Coordinator,
  TurnQueue,
  type CoordinatorStatus,
  type Duration,
  type Leadership,
  type TakeOptions,
  type Turn,
} from '../contracts/coordinator.js'
import { ConfigError, CoordinationUnavailableError, type LeaseLostReason } from '../contracts/errors.js'
import type { Logger } from '../contracts/logger.js'
import { parseDuration } from '../kernel/duration.js'
import { requireText } from '../kernel/options.js'
import { ShardNames } from './shard-names.js'
import { LEAD_PREFIX, type CoordinationBackend, type ShardedBackend } from './coordination-backend.js'
import { SessionElections, tryLead, type ElectionHost } from './leader-election.js'
import { SessionShard } from './session-shard.js'
import { LentLogger } from './lent-logger.js'
import { systemClock, systemRandom } from './system-clock.js'
import type { TakeResult, TicketRequest } from './ticket.js'

/** What coordinators of every backend accept. */
export interface CoordinatorOptions {
  /** How long a dead replica's turns stay blocked. Default 15 s, at least 1 s. */
  leaseMs?: Duration
  /** Unique among running processes. Default: a random UUID per process. */
  replicaId?: string
  /** Longest pause between polls where pushes are unavailable. Default 100 ms. */
  maxPollMs?: Duration
  /** Default 30 s: how long `start` tries to reach the backend. */
  startTimeoutMs?: Duration
  clock?: Clock
  random?: Random
  logger?: Logger
  /** Stands between the client logic and the backend: fault injection, measurements. */
  wrap?: (backend: CoordinationBackend) => CoordinationBackend
  /** The same for all coordinators of one process; only tests that play several processes set it. */
  processId?: string
}

/** Names for `refuseUnknownOptions` of those who extend these options. */
export const COORDINATOR_OPTIONS = [
  'leaseMs',
  'replicaId',
  'maxPollMs',
  'startTimeoutMs',
  'clock',
  'random',
  'logger',
  'wrap',
  'processId',
] as const

export interface SessionCoordinatorOptions extends CoordinatorOptions {
  backend: CoordinationBackend | ShardedBackend
}

const DEFAULT_WAIT_MS = 120_000
const thisProcess = systemRandom.uuid()

export class SessionCoordinator extends Coordinator {
  readonly replicaId: string
  readonly leaseMs: number
  readonly turns: TurnQueue
  readonly elections: SessionElections
  private readonly shards = new Map<number, SessionShard>()
  private readonly lostListeners = new Set<(lost: { key: string; reason: LeaseLostReason }) => void>()
  private readonly maxPollMs: number
  private readonly startTimeoutMs: number
  private readonly clock: Clock
  private readonly random: Random
  private readonly logger: LentLogger
  /** Where there are several shards. */
  private readonly names: ShardNames | null
  private stopped = false
  private stopping: Promise<void> | null = null
  /** Counts stops: a start that one has overtaken gives up. */
  private stops = 0

  constructor(private readonly options: SessionCoordinatorOptions) {
    super()
    this.leaseMs = parseDuration('leaseMs', options.leaseMs ?? '15s', { minMs: 1000 })
    this.maxPollMs = parseDuration('maxPollMs', options.maxPollMs ?? 100, { minMs: 5 })
    this.startTimeoutMs = parseDuration('startTimeoutMs', options.startTimeoutMs ?? '30s')
    this.replicaId =
      options.replicaId === undefined ? thisProcess : requireText('replicaId', options.replicaId)
    this.clock = options.clock ?? systemClock
    this.random = options.random ?? systemRandom
    this.logger = new LentLogger(options.logger)
    this.names = 'shardOf' in options.backend ? new ShardNames(this.replicaId, this.random) : null
    this.turns = new SessionTurnQueue((request) => this.takeTicket(request))
    this.elections = new SessionElections(this.electionHost())
  }

  /** With several shards: one name for the sessions of all of them, which changes when one of them is lost. */
  get incarnation(): string {
    return this.names?.incarnation ?? this.shardAt(0).incarnation
  }

  get status(): CoordinatorStatus {
    const all = [...this.shards.values()].map((shard) => shard.status)
    return all.find((one) => one.status === 'unreachable') ?? all[0] ?? { status: 'idle' }
  }

  sharesBackendWith(store: unknown): boolean {
    const { backend } = this.options
    return ('shardOf' in backend ? backend.shard(0) : backend).sharesStateWith(store)
  }

  override useLogger(logger: Logger): void {
    this.logger.lend(logger)
  }

  async start(): Promise<void> {
    const { stops } = this
    await this.stopping
    if (stops !== this.stops) throw new CoordinationUnavailableError('stopped')
    this.stopped = false
    await Promise.all([...this.shards.values()].map((shard) => shard.reopen()))
    if (stops !== this.stops) throw new CoordinationUnavailableError('stopped')
    await this.shardAt(0).start(this.startTimeoutMs)
  }

  async tryLead(name: string): Promise<Leadership | null> {
    return tryLead(this.electionHost(), requireText('name', name))
  }

  stop(): Promise<void> {
    this.stops += 1
    this.stopped = true
    this.stopping ??= this.stopOnce().finally(() => {
      this.stopping = null
    })
    return this.stopping
  }

  private async stopOnce(): Promise<void> {
    await this.elections.stop()
    await Promise.all([...this.shards.values()].map((shard) => shard.stop()))
    this.names?.renew()
  }

  onLost(listener: (lost: { key: string; reason: LeaseLostReason }) => void): () => void {
    this.lostListeners.add(listener)
    return () => this.lostListeners.delete(listener)
  }

  /** As if the process had died here: nothing is released, nobody is told, its sessions lapse. */
  protected async abandon(): Promise<void> {
    this.elections.crash()
    await Promise.all([...this.shards.values()].map((shard) => shard.stop({ silent: true })))
  }

  private takeTicket(request: TicketRequest): Promise<TakeResult> {
    const { backend } = this.options
    const index = 'shardOf' in backend ? backend.shardOf(request.key) : 0
    // A shard that was never used has not heard of the stop.
    if (this.stopped && !this.shards.has(index)) {
      return Promise.reject(new CoordinationUnavailableError('stopped', { key: request.key }))
    }
    return this.shardAt(index).take(request)
  }

  private shardAt(index: number): SessionShard {
    const known = this.shards.get(index)
    if (known) return known
    const { backend, processId = thisProcess, wrap = (unwrapped) => unwrapped } = this.options
    const { clock, random, logger, leaseMs, replicaId, maxPollMs, names } = this
    const shard = new SessionShard({
      backend: wrap('shardOf' in backend ? backend.shard(index) : backend),
      context: { leaseMs, callTimeoutMs: leaseMs / 3, replicaId, clock, random, logger },
      processId,
      maxPollMs,
      onLost: (lost) => this.tellLost(lost),
      ...(names && { names: () => names.session(index), onSessionLost: (name: string) => names.lost(name) }),
    })
    this.shards.set(index, shard)
    return shard
  }

  private electionHost(): ElectionHost {
    const { clock, logger, leaseMs } = this
    return { clock, logger, leaseMs, take: (request) => this.takeTicket(request) }
  }

  private tellLost(lost: { key: string; reason: LeaseLostReason }): void {
    for (const listener of this.lostListeners) {
      try {
        listener(lost)
      } catch (error) {
        this.logger.error({ err: error, ...lost }, 'a listener of lost leases threw')
      }
    }
  }
}

class SessionTurnQueue extends TurnQueue {
  constructor(private readonly takeTicket: (request: TicketRequest) => Promise<TakeResult>) {
    super()
  }

  take(key: string, options: TakeOptions = {}): Promise<Turn | 'duplicate'> {
    // On the path of every message: no more promises than needed.
    let request: TicketRequest
    try {
      request = toRequest(key, options)
    } catch (error) {
      return Promise.reject(error)
    }
    // `taken` answers `onlyIfFree` alone, which is never asked here.
    return this.takeTicket(request) as Promise<Turn | 'duplicate'>
  }
}

/** @throws ConfigError */
function toRequest(key: string, options: TakeOptions): TicketRequest {
  const { waitMs, dedupeId, signal, read, arrival, onTicket } = options
  requireText('key', key)
  if (key.startsWith(LEAD_PREFIX)) {
    throw new ConfigError(`A chat key cannot begin with "${LEAD_PREFIX}": those are leaderships.`, {
      option: 'key',
      value: key,
    })
  }
  const wait = waitMs === undefined ? DEFAULT_WAIT_MS : parseDuration('waitMs', waitMs)
  return { key, waitMs: wait, dedupeId, signal, read, arrival, onTicket }
}
