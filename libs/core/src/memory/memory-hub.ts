/**
 * The place where in-process coordinators meet: coordinators on one hub are to each other what replicas on one
 * Redis are (X1). It runs the turn machine directly and is the reference for every other backend.
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../contracts/clock.js'
import type { Duration } from '../contracts/coordinator.js'
import { ConfigError } from '../contracts/errors.js'
import type { CommitResult, Effects } from '../contracts/state-store.js'
import { describeValue, parseDuration } from '../kernel/duration.js'
import { refuseUnknownOptions } from '../kernel/options.js'
import * as machine from '../kernel/turn-machine.js'
import { emptyTurnMachine, type BreakableRule, type TurnMachineState } from '../kernel/turn-state.js'
import type {
  BackendListener,
  CommitRequest,
  Grant,
  HeartbeatReply,
  HeartbeatRequest,
  NudgeReply,
  OpenSessionRequest,
  ReleaseRequest,
  Repair,
  RepairReply,
  TakeReply,
  TakeRequest,
  WaitingKey,
  WithdrawRequest,
} from '../runtime/coordination-backend.js'
import { systemClock } from '../runtime/system-clock.js'
import type { MemoryData } from './memory-data.js'

export interface MemoryCoordinationHubOptions {
  /** Keys kept while nobody holds or wants them; the least recently used goes first. Default 10,000. What is
   * forgotten with a key: its previous holder and its committed ids. Its fences stay monotonic (X1). */
  maxIdleKeys?: number
  /** How long a committed message id is a duplicate. Default 24 h. */
  dedupeMs?: Duration
  /** Most tickets waiting per key. Default: no limit. */
  maxWaitingPerKey?: number
  clock?: Clock
  /** For tests of the tests: rules to switch off. */
  broken?: Iterable<BreakableRule>
}

export class MemoryCoordinationHub {
  private readonly clock: Clock
  private readonly state: TurnMachineState
  private readonly listeners = new Map<string, BackendListener>()
  private data: MemoryData | null = null

  constructor(options: MemoryCoordinationHubOptions = {}) {
    const known = ['maxIdleKeys', 'dedupeMs', 'maxWaitingPerKey', 'clock', 'broken']
    refuseUnknownOptions('MemoryCoordinationHub', options, known)
    const { maxIdleKeys = 10_000, dedupeMs, maxWaitingPerKey, broken = [] } = options
    requireCount('maxIdleKeys', maxIdleKeys)
    if (maxWaitingPerKey !== undefined) requireCount('maxWaitingPerKey', maxWaitingPerKey)
    this.clock = options.clock ?? systemClock
    const idle = new LRUCache<string, true>({
      max: maxIdleKeys,
      dispose: (_value, key, reason) => {
        if (reason === 'evict') this.state.keys.delete(key)
      },
    })
    const limits = {
      ...(dedupeMs === undefined ? {} : { dedupeMs: parseDuration('dedupeMs', dedupeMs, { minMs: 1 }) }),
      ...(maxWaitingPerKey === undefined ? {} : { maxWaitingPerKey }),
    }
    const idleKeys = {
      add: (key: string) => void idle.set(key, true),
      delete: (key: string) => void idle.delete(key),
    }
    this.state = emptyTurnMachine({ limits, idle: idleKeys, broken })
  }

  /** Keys known at present: held, waited for, or idle and not yet evicted. */
  get size(): number {
    return this.state.keys.size
  }

  /** Forgets everything at once, as a server that restarts empty does (scenario 9). */
  wipe(): void {
    this.state.keys.clear()
    this.state.sessions.clear()
    this.state.processes.clear()
    this.state.floor = 0
  }

  /** Makes commits and reads part of the same atomic step as turns. */
  shareWith(data: MemoryData): void {
    this.data = data
    data.turns = {
      lastFence: (key) => this.state.keys.get(key)?.lastFence ?? 0,
      isCommitted: (key, id) => machine.isCommittedId(this.state, key, id, this.clock.now()),
      isBusy: (key) => {
        const known = this.state.keys.get(key)
        return known !== undefined && (known.holder !== null || known.queue.size > 0)
      },
    }
  }

  sharesDataWith(data: MemoryData): boolean {
    return this.data === data
  }

  // --- operations of the port, synchronous and atomic ------------------------------------------------------------

  openSession(request: OpenSessionRequest, listener: BackendListener): void {
    const outcome = machine.openSession(this.state, request, this.clock.now())
    this.tell(outcome.effects)
    if (outcome.reply === 'exists') {
      throw new ConfigError(`Session "${request.session}" exists already.`, { option: 'session' })
    }
    this.listeners.set(request.session, listener)
  }

  closeSession(session: string): void {
    this.listeners.delete(session)
    this.tell(machine.closeSession(this.state, session, this.clock.now()).effects)
  }

  /** No more pushes to this session; in the turn machine it lives until it lapses. */
  silence(session: string): void {
    this.listeners.delete(session)
  }

  heartbeat(request: HeartbeatRequest): HeartbeatReply {
    const { session } = request
    const renewed = machine.renewSession(this.state, request, this.clock.now())
    this.tell(renewed.effects)
    if (!renewed.reply.alive) return { outcome: 'session-lost' }
    const waiting = this.nudge(session, request.waiting)
    const repairs = request.repairs.map((repair) => this.repair(repair))
    const { unknown, missing } = machine.compareHeld(this.state, session, request.held)
    const reply = { outcome: 'alive' as const, unknown, missing, waiting, repairs }
    return renewed.reply.twin === undefined ? reply : { ...reply, twin: renewed.reply.twin }
  }

  take(request: TakeRequest): TakeReply {
    const outcome = machine.take(this.state, request, this.clock.now())
    this.tell(outcome.effects)
    const reply = outcome.reply
    if (reply.outcome !== 'granted' && reply.outcome !== 'queued') return reply
    const arrival =
      request.arrival && this.data ? { arrival: this.data.arrive(request.key, request.arrival) } : {}
    if (reply.outcome === 'queued') return { ...reply, ...arrival }
    const grant = this.withRevision(reply.grant)
    // A read counts only if this very call made the grant.
    const state =
      request.read && this.data && reply.fresh
        ? { state: this.data.readState(request.key, request.read) }
        : {}
    return { outcome: 'granted', grant, ...arrival, ...state }
  }

  release(request: ReleaseRequest): void {
    this.tell(machine.release(this.state, request, this.clock.now()).effects)
  }

  withdraw(request: WithdrawRequest): void {
    this.tell(machine.withdraw(this.state, request, this.clock.now()).effects)
  }

  commit(request: CommitRequest): CommitResult {
    const { session, key, ticket, fence, commitId, release, effects } = request
    const inboundId = effects.inboundId === undefined ? {} : { inboundId: effects.inboundId }
    const event = { session, key, ticket, fence, commitId, release, ...inboundId }
    const outcome = machine.commit(this.state, event, this.clock.now(), () => this.store(key, effects))
    this.tell(outcome.effects)
    return outcome.reply
  }

  nudge(session: string, waiting: readonly WaitingKey[]): NudgeReply[] {
    const outcome = machine.nudge(this.state, session, waiting, this.clock.now())
    this.tell(outcome.effects)
    return outcome.reply.map((reply) =>
      reply.outcome === 'granted' ? { ...reply, grant: this.withRevision(reply.grant) } : reply,
    )
  }

  private repair(repair: Repair): RepairReply {
    switch (repair.kind) {
      case 'release':
        this.release(repair)
        return 'done'
      case 'withdraw':
        this.withdraw(repair)
        return 'done'
      case 'commit':
        try {
          return { commit: this.commit(repair) }
        } catch (error) {
          return { failed: error instanceof Error ? error : new Error(String(error)) }
        }
    }
  }

  private store(key: string, effects: Effects): CommitResult {
    if (this.data) return this.data.apply(key, effects)
    const { inboundId: _inboundId, ...others } = effects
    const named = Object.keys(others)
    if (named.length === 0) return { outcome: 'committed', revision: null }
    throw new ConfigError(
      `This hub has no store, so a commit cannot hold ${named.join(', ')}: use the coordinator of a MemoryStore.`,
      { option: 'coordinator' },
    )
  }

  private withRevision(grant: Grant): Grant {
    return this.data ? { ...grant, revision: this.data.revision(grant.key) } : grant
  }

  /** Pushes come on their own, never inside the call that caused them. */
  private tell(effects: readonly machine.TurnEffect[]): void {
    for (const effect of effects) {
      const listener = this.listeners.get(effect.session)
      if (!listener) continue
      if (effect.type === 'granted') {
        const grant = this.withRevision(effect.grant)
        queueMicrotask(() => listener.granted(effect.session, grant))
      } else {
        queueMicrotask(() => listener.duplicate(effect.session, effect.key, effect.ticket))
      }
    }
  }
}

function requireCount(option: string, value: unknown): void {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return
  const accepted = 'a whole number from 1'
  throw new ConfigError(`Option "${option}" is ${describeValue(value)}; accepted: ${accepted}.`, {
    option,
    value,
    accepted,
  })
}
