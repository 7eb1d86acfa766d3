/**
 * One shard: one backend instance, one session at a time, its turns and leaderships. A loss concerns this shard
 * only. Wiring; the work is in `session-keeper.ts` and `turn-queue.ts`.
 */
import { CoordinationUnavailableError } from '../contracts/errors.js'
import type { CoordinatorStatus } from '../contracts/coordinator.js'
import type { BackendContext, BackendListener, CoordinationBackend } from './coordination-backend.js'
import { SessionKeeper, type SessionHost } from './session-keeper.js'
import type { TakeResult, TicketRequest } from './ticket.js'
import { ShardTurns, type LostListener } from './turn-queue.js'

export interface ShardOptions {
  backend: CoordinationBackend
  context: Omit<BackendContext, 'listener'>
  processId: string
  maxPollMs: number
  onLost: LostListener
  /** Names sessions, where an incarnation has one in each of several shards. */
  names?: () => string
  onSessionLost?: (session: string) => void
}

interface Waiter {
  resolve(): void
  reject(error: Error): void
}

export class SessionShard {
  private readonly keeper: SessionKeeper
  private readonly turns: ShardTurns
  private readonly starting = new Set<Waiter>()
  private stopping: Promise<void> | null = null
  /** Counts stops: a start that one has overtaken gives up. */
  private stops = 0

  constructor(private readonly options: ShardOptions) {
    const context: BackendContext = { ...options.context, listener: this.listener() }
    this.turns = new ShardTurns(
      options.backend,
      context,
      options.maxPollMs,
      () => this.keeper,
      options.onLost,
    )
    const { backend, processId, names } = options
    this.keeper = new SessionKeeper(backend, context, processId, this.host(), names)
  }

  get incarnation(): string {
    return this.keeper.incarnation
  }

  get status(): CoordinatorStatus {
    return this.keeper.status
  }

  take(request: TicketRequest): Promise<TakeResult> {
    return this.turns.take(request)
  }

  /** Resolves when a session is live. @throws ConfigError; CoordinationUnavailableError after `timeoutMs`, or `stopped`. */
  async start(timeoutMs: number): Promise<void> {
    const { stops } = this
    await this.reopen()
    if (stops !== this.stops) throw new CoordinationUnavailableError('stopped')
    if (this.keeper.current) return
    await new Promise<void>((resolve, reject) => {
      const waiter: Waiter = {
        resolve: () => this.leave(waiter, timer, resolve),
        reject: (error) => this.leave(waiter, timer, () => reject(error)),
      }
      const late = (): void => {
        const cause = this.keeper.trouble
        const where = this.options.backend.place
        waiter.reject(new CoordinationUnavailableError('unreachable', { waitedMs: timeoutMs, where, cause }))
      }
      const timer = this.options.context.clock.setTimeout(late, timeoutMs)
      this.starting.add(waiter)
      this.keeper.ensure()
    })
  }

  /** After a stop: takes are accepted again, and begin a session. @throws CoordinationUnavailableError, `stopped` */
  async reopen(): Promise<void> {
    const { stops } = this
    await this.stopping
    if (stops !== this.stops) throw new CoordinationUnavailableError('stopped')
    this.turns.begin()
  }

  private leave(waiter: Waiter, timer: { cancel(): void }, settle: () => void): void {
    this.starting.delete(waiter)
    timer.cancel()
    settle()
  }

  /** `silent`: as if the process had died: nothing is released, nobody is told. */
  stop(options: { silent: boolean } = { silent: false }): Promise<void> {
    this.stops += 1
    this.stopping ??= this.stopOnce(options.silent).finally(() => {
      this.stopping = null
    })
    return this.stopping
  }

  private async stopOnce(silent: boolean): Promise<void> {
    for (const waiter of [...this.starting]) waiter.reject(new CoordinationUnavailableError('stopped'))
    const waitMs = silent ? 0 : this.options.context.callTimeoutMs
    await this.turns.stop({ waitMs, silent })
    await this.keeper.stop({ release: !silent })
  }

  private host(): SessionHost {
    return {
      floor: () => this.turns.floor,
      beatContent: () => this.turns.beatContent(),
      beaten: (session, sent, reply) => this.turns.beaten(session, sent, reply),
      opened: () => {
        for (const waiter of [...this.starting]) waiter.resolve()
        this.turns.opened()
      },
      lost: (session, reason) => {
        this.options.onSessionLost?.(session.name)
        this.turns.lost(session, reason)
      },
      refused: (error) => {
        for (const waiter of [...this.starting]) waiter.reject(error)
        this.turns.refused(error)
      },
    }
  }

  private listener(): BackendListener {
    return {
      granted: (session, grant) => this.turns.granted(session, grant),
      duplicate: (session, _key, ticket) => this.turns.duplicate(session, ticket),
      pushLive: (live) => this.turns.pushLive(live),
      reconnected: () => {
        this.keeper.hurry()
        this.turns.reconnected()
      },
    }
  }
}
