/** The in-process coordinator (X1): the shared client logic over a hub. */
import { ConfigError } from '../contracts/errors.js'
import type { CommitResult } from '../contracts/state-store.js'
import { refuseUnknownOptions } from '../kernel/options.js'
import type {
  BackendContext,
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
import {
  COORDINATOR_OPTIONS,
  SessionCoordinator,
  type CoordinatorOptions,
} from '../runtime/session-coordinator.js'
import { CoordinationUnavailableError } from '../contracts/errors.js'
import { MemoryCoordinationHub } from './memory-hub.js'

/** The port over a hub. Calls take effect at once; answers come as microtasks. */
export class MemoryBackend implements CoordinationBackend {
  readonly kind = 'memory'
  private context: BackendContext | null = null
  private sessions = new Set<string>()

  constructor(
    private readonly hub: MemoryCoordinationHub,
    private readonly shares: (store: unknown) => boolean = () => false,
  ) {}

  async open(context: BackendContext): Promise<void> {
    this.context = context
    context.listener.pushLive(true)
  }

  async close(): Promise<void> {
    for (const session of this.sessions) this.hub.silence(session)
    this.sessions.clear()
    this.context = null
  }

  sharesStateWith(store: unknown): boolean {
    return this.shares(store)
  }

  async openSession(request: OpenSessionRequest): Promise<void> {
    this.hub.openSession(request, this.opened().listener)
    this.sessions.add(request.session)
  }

  async closeSession(session: string): Promise<void> {
    this.sessions.delete(session)
    this.hub.closeSession(session)
  }

  async heartbeat(request: HeartbeatRequest): Promise<HeartbeatReply> {
    this.opened()
    return this.hub.heartbeat(request)
  }

  async take(request: TakeRequest): Promise<TakeReply> {
    this.opened()
    return this.hub.take(request)
  }

  async release(request: ReleaseRequest): Promise<void> {
    this.opened()
    this.hub.release(request)
  }

  async withdraw(request: WithdrawRequest): Promise<void> {
    this.opened()
    this.hub.withdraw(request)
  }

  async commit(request: CommitRequest): Promise<CommitResult> {
    this.opened()
    return this.hub.commit(request)
  }

  async nudge(session: string, waiting: readonly WaitingKey[]): Promise<NudgeReply[]> {
    this.opened()
    return this.hub.nudge(session, waiting)
  }

  private opened(): BackendContext {
    if (this.context) return this.context
    throw new CoordinationUnavailableError('stopped')
  }
}

export interface MemoryCoordinatorOptions extends CoordinatorOptions {
  hub: MemoryCoordinationHub
  /** Set by `MemoryStore.coordinator`. */
  sharesWith?: (store: unknown) => boolean
}

export class MemoryCoordinator extends SessionCoordinator {
  constructor(options: MemoryCoordinatorOptions) {
    const { hub, sharesWith, ...rest } = options
    refuseUnknownOptions('MemoryCoordinator', rest, COORDINATOR_OPTIONS)
    if (!(hub instanceof MemoryCoordinationHub)) {
      const accepted = 'a MemoryCoordinationHub'
      throw new ConfigError(`Option "hub" of MemoryCoordinator is missing; accepted: ${accepted}.`, {
        option: 'hub',
        accepted,
      })
    }
    super({ ...rest, backend: new MemoryBackend(hub, sharesWith) })
  }

  /**
   * Plays the death of the process: all activity stops at once, nothing is released. The session lapses `leaseMs`
   * after its last renewal, by the hub's clock. Takes that wait here reject, signals of turns abort, so that code
   * of the "dead" replica ends; no listener is told.
   */
  crash(): void {
    void this.abandon()
  }
}
