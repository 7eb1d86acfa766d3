/**
 * Elections over fenced leases by name (`store.leases()`), for schedulers without a coordinator (S2, J1).
 *
 *   standing   asks for the lease every third of a lease. Acquired in time: leading.
 *   leading    renews every third. The term of trust counts from the *start* of the last call that was confirmed, by the
 *              monotonic clock, less a margin (I7): it ends before the store gives the lease to somebody else. Over, or
 *              refused: lost, and standing anew.
 *   stopped    released. Nothing leads out of it.
 */
import type { Clock, Timer } from '../contracts/clock.js'
import {
  LeaderElection,
  type CampaignListener,
  type Candidacy,
  type FollowReason,
  type Leadership,
} from '../contracts/coordinator.js'
import { LeaseLostError, type LeaseLostReason } from '../contracts/errors.js'
import type { FencedLock } from '../contracts/lock-store.js'
import type { Logger } from '../contracts/logger.js'
import {
  enoughToHandOver,
  isTrusted,
  laterTerm,
  leaseTerm,
  renewEveryMs,
  type LeaseTerm,
} from '../kernel/lease-term.js'
import type { Leases } from './options.js'

/** Of a renewal that failed, in a lease. */
const RETRIES = 12

export interface LeaseElectionOptions {
  leases: Leases
  leaseMs: number
  clock: Clock
  logger: Logger
}

export class LeaseElection extends LeaderElection {
  constructor(private readonly options: LeaseElectionOptions) {
    super()
  }

  campaign(name: string, listener: CampaignListener): Candidacy {
    return new LeaseCandidacy(this.options, name, listener)
  }
}

class LeaseCandidacy implements Candidacy {
  private held: HeldLease | null = null
  private state: 'standing' | 'leading' | 'stopped' = 'standing'
  private timer: Timer | null = null
  private asking: Promise<void> = Promise.resolve()
  private announced = false

  constructor(
    private readonly options: LeaseElectionOptions,
    private readonly name: string,
    private readonly listener: CampaignListener,
  ) {
    this.look()
  }

  get leadership(): Leadership | null {
    return this.held
  }

  async resign(reason: FollowReason, pauseMs: number): Promise<void> {
    const { held } = this
    if (held === null) return
    this.held = null
    this.state = 'standing'
    this.later(pauseMs)
    this.tell(() => this.listener.onFollow(reason))
    await held.release()
  }

  async stop(): Promise<void> {
    if (this.state === 'stopped') return
    const { held } = this
    this.state = 'stopped'
    this.held = null
    this.timer?.cancel()
    if (held !== null) this.tell(() => this.listener.onFollow('stopped'))
    // An answer that is under way may bring the lease: it is given back then.
    await Promise.all([held?.release(), this.asking])
  }

  private look(): void {
    this.asking = this.ask().catch((error: unknown) => {
      this.options.logger.warn({ err: error, name: this.name }, 'could not ask for the lease; trying again')
      this.later(renewEveryMs(this.options.leaseMs))
    })
  }

  private async ask(): Promise<void> {
    const { leases, leaseMs, clock } = this.options
    const term = leaseTerm(leaseMs, clock.monotonic())
    const lock = await leases.acquireLockFenced(this.name, leaseMs)
    const late = lock !== null && !enoughToHandOver(term, clock.monotonic())
    if (lock !== null && (late || this.state === 'stopped')) await leases.releaseLock(this.name, lock.token)
    if (this.state !== 'standing') return
    if (lock === null || late) {
      if (lock === null) this.announceStandby()
      return this.later(renewEveryMs(leaseMs))
    }
    this.lead(lock, term)
  }

  private lead(lock: FencedLock, term: LeaseTerm): void {
    const held = new HeldLease(this.options, this.name, lock, term, () => this.lost(held))
    this.held = held
    this.state = 'leading'
    this.announced = true
    this.tell(() => this.listener.onLead(held))
  }

  private lost(held: HeldLease): void {
    if (this.held !== held) return
    this.held = null
    this.state = 'standing'
    this.tell(() => this.listener.onFollow('lost'))
    this.look()
  }

  private announceStandby(): void {
    if (this.announced) return
    this.announced = true
    this.tell(() => this.listener.onFollow('standby'))
  }

  private later(ms: number): void {
    this.timer?.cancel()
    if (this.state === 'stopped') return
    this.timer = this.options.clock.setTimeout(() => this.look(), ms, { background: true })
  }

  private tell(call: () => void): void {
    try {
      call()
    } catch (error) {
      this.options.logger.error({ err: error, name: this.name }, 'a campaign listener threw')
    }
  }
}

/** A lease that is held, and keeps itself. */
class HeldLease implements Leadership {
  readonly fence: number
  private readonly controller = new AbortController()
  private renewal: Timer | null = null
  private trust: Timer | null = null
  private ended: LeaseLostError | null = null

  constructor(
    private readonly options: LeaseElectionOptions,
    readonly name: string,
    private readonly lock: FencedLock,
    private term: LeaseTerm,
    private readonly onLost: () => void,
  ) {
    this.fence = lock.fence
    this.watch()
    this.renewLater()
  }

  get signal(): AbortSignal {
    return this.controller.signal
  }

  assertHeld(): void {
    if (this.ended === null && !isTrusted(this.term, this.options.clock.monotonic())) this.lose('frozen')
    if (this.ended !== null) throw this.ended
  }

  async release(): Promise<void> {
    if (this.ended !== null) return
    this.end('stopped')
    try {
      await this.options.leases.releaseLock(this.name, this.lock.token)
    } catch (error) {
      const { logger, leaseMs } = this.options
      logger.warn(
        { err: error, name: this.name, leaseMs },
        'a lease could not be released: it ends by itself',
      )
    }
  }

  private watch(): void {
    this.trust?.cancel()
    const leftMs = this.term.trustUntil - this.options.clock.monotonic()
    const look = () => {
      if (this.ended !== null) return
      if (isTrusted(this.term, this.options.clock.monotonic())) this.watch()
      else this.lose('frozen')
    }
    this.trust = this.options.clock.setTimeout(look, leftMs, { background: true })
  }

  private renewLater(ms = renewEveryMs(this.options.leaseMs)): void {
    this.renewal?.cancel()
    this.renewal = this.options.clock.setTimeout(() => void this.renew(), ms, { background: true })
  }

  /** Never rejects. Does not wait for one that hangs: the next comes in time. */
  private async renew(): Promise<void> {
    if (this.ended !== null) return
    this.renewLater()
    const { leases, leaseMs, clock, logger } = this.options
    const term = leaseTerm(leaseMs, clock.monotonic())
    try {
      const kept = await leases.renewLock(this.name, this.lock.token, leaseMs)
      if (this.ended !== null) return
      if (!kept) return this.lose('expired')
      this.term = laterTerm(this.term, term)
      this.watch()
    } catch (error) {
      if (this.ended !== null) return
      logger.warn({ err: error, name: this.name }, 'a lease could not be renewed; trying again')
      // Sooner than a third: what is left is little.
      this.renewLater(leaseMs / RETRIES)
    }
  }

  private lose(reason: LeaseLostReason): void {
    const error = this.end(reason)
    this.controller.abort(error)
    this.onLost()
  }

  private end(reason: LeaseLostReason): LeaseLostError {
    this.renewal?.cancel()
    this.trust?.cancel()
    this.ended = new LeaseLostError(this.name, reason, { fence: this.fence })
    return this.ended
  }
}
