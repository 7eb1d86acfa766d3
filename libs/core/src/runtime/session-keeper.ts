/**
 * Keeps one session alive in one shard of the backend and says when it can no longer be trusted (L1, L2).
 *
 * States:
 * - `idle`: no session and none wanted. `ensure` → opening.
 * - `opening`: tries until a creation is confirmed, each attempt under a fresh name. Confirmed → live; a
 *   ConfigError → idle, told to the host.
 * - `live`: renewed every third of a lease. Renewal says "gone" → `lost('expired')`; the local trust deadline passes
 *   first → `lost('frozen')`; both → opening, under a new incarnation.
 * - `stopped`: nothing runs. `ensure` → opening.
 * Ignored: every answer that concerns a session which is not the current one any more.
 */
import { ConfigError, type LeaseLostReason } from '../contracts/errors.js'
import type { Timer } from '../contracts/clock.js'
import type { CoordinatorStatus } from '../contracts/coordinator.js'
import {
  enoughToHandOver,
  isTrusted,
  laterTerm,
  leaseTerm,
  renewEveryMs,
  type LeaseTerm,
} from '../kernel/lease-term.js'
import { Backoff } from './backoff.js'
import type {
  BackendContext,
  CoordinationBackend,
  HeartbeatReply,
  HeartbeatRequest,
} from './coordination-backend.js'
import { freshIncarnation } from './shard-names.js'

/** One incarnation. */
export interface Session {
  readonly name: string
  term: LeaseTerm
}

export type BeatContent = Pick<HeartbeatRequest, 'held' | 'waiting' | 'repairs' | 'floor'>
export type AliveReply = Extract<HeartbeatReply, { outcome: 'alive' }>

/** Whoever owns what lives and dies with the session. */
export interface SessionHost {
  /** Highest fence seen. */
  floor(): number
  /** What the next heartbeat carries. */
  beatContent(): BeatContent
  /** A heartbeat was confirmed. */
  beaten(session: Session, sent: BeatContent, reply: AliveReply): void
  opened(session: Session): void
  /** Everything held under `session` is lost as of now. */
  lost(session: Session, reason: LeaseLostReason): void
  /** No session can be had: a mistake in the configuration. */
  refused(error: Error): void
}

export class SessionKeeper {
  private state: 'idle' | 'opening' | 'live' | 'stopped' = 'idle'
  private session: Session | null = null
  private nextName: string
  private lastName: string | null = null
  private backendOpen = false
  private beatTimer: Timer | null = null
  private trustTimer: Timer | null = null
  private beating: Promise<void> | null = null
  private unreachable: { since: number; error: unknown } | null = null
  private twinWarned = false
  /** Counts openings and stops, so that a loop that was overtaken ends. */
  private epoch = 0
  private readonly backoff: Backoff

  constructor(
    private readonly backend: CoordinationBackend,
    private readonly context: BackendContext,
    private readonly processId: string,
    private readonly host: SessionHost,
    /** Names a new session; default: an incarnation of its own. */
    private readonly names?: () => string,
  ) {
    this.nextName = freshIncarnation(context)
    this.backoff = new Backoff(context.random, 50, Math.min(2000, context.leaseMs / 3))
  }

  /** The live session, or null. Not proof that it is still trusted: see `trusted`. */
  get current(): Session | null {
    return this.session
  }

  /** The latest session's name, also after its end; before the first one the name that it will try. */
  get incarnation(): string {
    return this.lastName ?? this.nextName
  }

  get status(): CoordinatorStatus {
    if (this.state === 'idle' || this.state === 'stopped') return { status: this.state }
    if (this.unreachable) {
      const { since, error } = this.unreachable
      const text = error instanceof Error ? error.message : String(error)
      return { status: 'unreachable', sinceMs: this.context.clock.monotonic() - since, error: text }
    }
    return { status: this.state === 'live' ? 'live' : 'starting' }
  }

  /** Why the backend is out of reach, if it is. */
  get trouble(): unknown {
    return this.unreachable?.error
  }

  /** Begins to open a session, unless one is there or on its way. */
  ensure(): void {
    if (this.state === 'live' || this.state === 'opening') return
    this.state = 'opening'
    this.epoch += 1
    void this.openLoop(this.epoch)
  }

  /**
   * True while this session may act (I7). Looks at the clock, so that a process which was frozen finds out before
   * its timers do.
   */
  trusted(session: Session, now = this.context.clock.monotonic()): boolean {
    if (session !== this.session) return false
    if (isTrusted(session.term, now)) return true
    this.lose('frozen')
    return false
  }

  /** Enough life left to hand a fresh turn to the application: two thirds of a lease. */
  enoughToHandOver(session: Session, now = this.context.clock.monotonic()): boolean {
    return this.trusted(session, now) && enoughToHandOver(session.term, now)
  }

  /** Renews now. Resolves when the attempt is over, whatever came of it; never rejects. */
  renew(): Promise<void> {
    this.beating ??= this.beat().finally(() => {
      this.beating = null
    })
    return this.beating
  }

  /** The backend said that `session` is gone. */
  reportGone(session: Session): void {
    if (session === this.session) this.lose('expired')
  }

  /** The connection came back: do not wait out the pause. */
  hurry(): void {
    this.backoff.hurry()
    if (this.state === 'live' && this.unreachable) void this.renew()
  }

  /** Stops at once; whatever the session held stays with it in the backend until `release` or its end. */
  async stop(options: { release: boolean }): Promise<void> {
    const session = this.session
    this.state = 'stopped'
    this.epoch += 1
    this.endSession()
    this.backoff.hurry()
    if (session && options.release) {
      await this.backend.closeSession(session.name).catch((error: unknown) => {
        const told = { err: error, session: session.name }
        this.context.logger.warn(told, 'could not close the session: it lapses by itself within its lease')
      })
    }
    this.backendOpen = false
    await this.backend.close()
  }

  private async openLoop(epoch: number): Promise<void> {
    while (this.epoch === epoch) {
      try {
        if (await this.tryOpen(epoch)) return
      } catch (error) {
        if (this.epoch !== epoch) return
        if (error instanceof ConfigError) {
          this.state = 'idle'
          return this.host.refused(error)
        }
        this.noteUnreachable(error, 'could not begin a session; trying again')
      }
      if (this.epoch === epoch) await this.backoff.wait(this.context.clock)
    }
  }

  private async tryOpen(epoch: number): Promise<boolean> {
    const { clock, leaseMs, replicaId } = this.context
    if (!this.backendOpen) {
      await this.backend.open(this.context)
      // Stopped meanwhile: its close may have come before there was anything to close.
      if (this.state === 'stopped') await this.backend.close()
      if (this.epoch !== epoch) return false
      this.backendOpen = true
    }
    const name = this.names?.() ?? this.nextName
    if (name === this.nextName) this.nextName = freshIncarnation(this.context)
    const startedAt = clock.monotonic()
    const floor = this.host.floor()
    await this.backend.openSession({ session: name, replicaId, processId: this.processId, leaseMs, floor })
    const session: Session = { name, term: leaseTerm(leaseMs, startedAt) }
    if (this.epoch !== epoch || !isTrusted(session.term, clock.monotonic())) {
      // Confirmed too late to be of use, or no longer wanted: nothing was taken under it.
      if (this.backendOpen) this.closeQuietly(name)
      return false
    }
    this.state = 'live'
    this.session = session
    this.lastName = name
    this.unreachable = null
    this.twinWarned = false
    this.backoff.reset()
    this.armBeat(renewEveryMs(leaseMs))
    this.armTrust()
    this.context.logger.info({ session: name, replica: replicaId }, 'session begun')
    this.host.opened(session)
    return true
  }

  private async beat(): Promise<void> {
    const session = this.session
    if (!session || !this.trusted(session)) return
    const { clock, leaseMs, replicaId } = this.context
    const startedAt = clock.monotonic()
    const sent = this.host.beatContent()
    this.armBeat(renewEveryMs(leaseMs))
    try {
      const request = { session: session.name, replicaId, processId: this.processId, leaseMs, ...sent }
      const reply = await this.backend.heartbeat(request)
      if (this.session !== session) return
      if (reply.outcome === 'session-lost') return this.lose('expired')
      session.term = laterTerm(session.term, leaseTerm(leaseMs, startedAt))
      if (!this.trusted(session)) return
      this.unreachable = null
      this.armTrust()
      this.noteTwin(reply.twin)
      this.host.beaten(session, sent, reply)
    } catch (error) {
      if (this.session !== session) return
      this.noteUnreachable(error, 'no answer to the heartbeat; trying again')
      // Not a whole third later: what is left of the trust is better spent on more attempts.
      this.armBeat(renewEveryMs(leaseMs) / 4)
    }
  }

  private lose(reason: LeaseLostReason): void {
    const session = this.session
    if (!session) return
    this.endSession()
    this.state = 'opening'
    this.epoch += 1
    this.context.logger.warn({ session: session.name, reason }, 'session lost; beginning a new incarnation')
    // Frozen: the backend may not know yet, and nobody acts in its name any more.
    if (reason === 'frozen') this.closeQuietly(session.name)
    this.host.lost(session, reason)
    void this.openLoop(this.epoch)
  }

  private endSession(): void {
    this.session = null
    this.beatTimer?.cancel()
    this.trustTimer?.cancel()
    this.beatTimer = this.trustTimer = null
  }

  private closeQuietly(name: string): void {
    this.backend.closeSession(name).catch((error: unknown) => {
      this.context.logger.debug({ err: error, session: name }, 'the abandoned session lapses by itself')
    })
  }

  private armBeat(ms: number): void {
    this.beatTimer?.cancel()
    this.beatTimer = this.context.clock.setTimeout(() => void this.renew(), ms, { background: true })
  }

  private armTrust(): void {
    const session = this.session
    if (!session) return
    this.trustTimer?.cancel()
    const left = session.term.trustUntil - this.context.clock.monotonic()
    const check = (): void => {
      // A timer may fire a little early; then trust is not over yet.
      if (this.session === session && this.trusted(session)) this.armTrust()
    }
    this.trustTimer = this.context.clock.setTimeout(check, Math.max(1, left), { background: true })
  }

  private noteUnreachable(error: unknown, text: string): void {
    if (!this.unreachable) this.context.logger.warn({ err: error }, text)
    this.unreachable = { since: this.unreachable?.since ?? this.context.clock.monotonic(), error }
  }

  private noteTwin(twin: string | undefined): void {
    if (twin === undefined || this.twinWarned) return
    this.twinWarned = true
    this.context.logger.warn(
      { replicaId: this.context.replicaId },
      'another running process uses the same replicaId: both work, but give each its own',
    )
  }
}
