/**
 * A backend that misbehaves as networks do: replies are lost, requests never leave, calls are doubled or late, pushes
 * vanish. Which call suffers what is decided by a function, so a seed repeats a run.
 */
import { CoordinationUnavailableError } from '../contracts/errors.js'
import type { CommitResult } from '../contracts/state-store.js'
import type {
  BackendContext,
  BackendListener,
  CommitRequest,
  CoordinationBackend,
  HeartbeatReply,
  HeartbeatRequest,
  NudgeReply,
  OpenSessionRequest,
  ReleaseRequest,
  TakeReply,
  TakeRequest,
  WaitingKey,
  WithdrawRequest,
} from '../runtime/coordination-backend.js'
import type { SeededRandom } from './seeded-random.js'

export type BackendCall =
  'openSession' | 'closeSession' | 'heartbeat' | 'take' | 'release' | 'withdraw' | 'commit' | 'nudge'

/**
 * - `lost-reply`: it is done, and the caller learns nothing.
 * - `not-sent`: it is not done, and the caller cannot tell.
 * - `duplicate`: it is done twice; the second time after the caller has its answer.
 * - `late`: it is done, and the answer takes `delayMs`.
 */
export type Fault = 'lost-reply' | 'not-sent' | 'duplicate' | 'late' | null

export interface FaultPlan {
  /** Decides about one call. */
  fault?: (call: BackendCall) => Fault
  /** Decides about one push: false loses it. */
  push?: () => boolean
  /** What the client is told about pushes; default: what the backend says. */
  pushLive?: boolean
  delayMs?: number
  /** Switches reconciliation off: heartbeats renew and say nothing. For tests of the tests. */
  blind?: boolean
}

/** Each call fails in one of the four ways with `chance`; pushes are lost with the same chance. */
export function randomFaults(random: SeededRandom, chance: number, delayMs = 5): FaultPlan {
  const kinds: Fault[] = ['lost-reply', 'not-sent', 'duplicate', 'late']
  return {
    fault: () => (random.next() < chance ? random.pick(kinds) : null),
    push: () => random.next() >= chance,
    delayMs,
  }
}

export class FaultyBackend implements CoordinationBackend {
  private context: BackendContext | null = null
  /** Calls by name, as the client made them. */
  readonly calls = new Map<BackendCall, number>()

  constructor(
    private readonly inner: CoordinationBackend,
    /** May be changed while it runs. */
    public plan: FaultPlan,
  ) {}

  get kind(): string {
    return this.inner.kind
  }

  get totalCalls(): number {
    return [...this.calls.values()].reduce((sum, one) => sum + one, 0)
  }

  open(context: BackendContext): Promise<void> {
    this.context = context
    return this.inner.open({ ...context, listener: this.listener(context.listener) })
  }

  close(): Promise<void> {
    return this.inner.close()
  }

  sharesStateWith(store: unknown): boolean {
    return this.inner.sharesStateWith(store)
  }

  openSession(request: OpenSessionRequest): Promise<void> {
    return this.call('openSession', () => this.inner.openSession(request), false)
  }

  closeSession(session: string): Promise<void> {
    return this.call('closeSession', () => this.inner.closeSession(session))
  }

  heartbeat(request: HeartbeatRequest): Promise<HeartbeatReply> {
    return this.call('heartbeat', async () => {
      if (!this.plan.blind) return this.inner.heartbeat(request)
      const reply = await this.inner.heartbeat({ ...request, waiting: [], repairs: [] })
      if (reply.outcome !== 'alive') return reply
      return { ...reply, unknown: [], missing: [], waiting: [], repairs: [] }
    })
  }

  take(request: TakeRequest): Promise<TakeReply> {
    return this.call('take', () => this.inner.take(request))
  }

  release(request: ReleaseRequest): Promise<void> {
    return this.call('release', () => this.inner.release(request))
  }

  withdraw(request: WithdrawRequest): Promise<void> {
    return this.call('withdraw', () => this.inner.withdraw(request))
  }

  commit(request: CommitRequest): Promise<CommitResult> {
    return this.call('commit', () => this.inner.commit(request))
  }

  nudge(session: string, waiting: readonly WaitingKey[]): Promise<NudgeReply[]> {
    return this.call('nudge', () => this.inner.nudge(session, waiting))
  }

  private async call<T>(name: BackendCall, work: () => Promise<T>, mayRepeat = true): Promise<T> {
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1)
    const fault = this.plan.fault?.(name) ?? null
    switch (fault) {
      case 'not-sent':
        await this.delay()
        throw new CoordinationUnavailableError('unreachable')
      case 'lost-reply':
        await work()
        await this.delay()
        throw new CoordinationUnavailableError('unreachable')
      case 'late': {
        const reply = await work()
        await this.delay()
        return reply
      }
      case 'duplicate': {
        const reply = await work()
        // The copy's fate is nobody's concern.
        if (mayRepeat)
          void this.delay()
            .then(work)
            .catch(() => undefined)
        return reply
      }
      case null:
        return work()
    }
  }

  private delay(): Promise<void> {
    const { context } = this
    if (!context) return Promise.resolve()
    return new Promise((resolve) => context.clock.setTimeout(resolve, this.plan.delayMs ?? 5))
  }

  private listener(inner: BackendListener): BackendListener {
    const arrives = (): boolean => this.plan.push?.() ?? true
    return {
      granted: (session, grant) => {
        if (arrives()) inner.granted(session, grant)
      },
      duplicate: (session, key, ticket) => {
        if (arrives()) inner.duplicate(session, key, ticket)
      },
      pushLive: (live) => inner.pushLive(this.plan.pushLive ?? live),
      reconnected: () => inner.reconnected(),
    }
  }
}
