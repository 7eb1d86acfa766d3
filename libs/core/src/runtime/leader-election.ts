/**
 * Elections over turns of `lead:<name>`: a candidate's ticket waits in the backend's line, so that the release of a
 * leader who resigns or stops *is* the grant of the next (Z7), and a dead leader's session lapses like any other.
 * The states are in `kernel/election-machine.ts`; this file carries its effects out.
 */
import { CoordinationUnavailableError, LeaseLostError } from '../contracts/errors.js'
import type { Clock, Timer } from '../contracts/clock.js'
import {
  LeaderElection,
  type Candidacy,
  type CampaignListener,
  type FollowReason,
  type Leadership,
} from '../contracts/coordinator.js'
import type { Logger } from '../contracts/logger.js'
import {
  electionStep,
  type ElectionEffect,
  type ElectionEvent,
  type ElectionState,
} from '../kernel/election-machine.js'
import { LEAD_PREFIX } from './coordination-backend.js'
import { HeldTurn } from './held-turn.js'
import type { TakeResult, TicketRequest } from './ticket.js'

/** What elections need from the coordinator. */
export interface ElectionHost {
  readonly clock: Clock
  readonly logger: Logger
  readonly leaseMs: number
  take(request: TicketRequest): Promise<TakeResult>
}

export function leadershipOf(name: string, turn: HeldTurn): Leadership {
  return {
    name,
    fence: turn.fence,
    get signal() {
      return turn.signal
    },
    assertHeld: () => turn.assertHeld(),
    release: () => turn.release(),
  }
}

/** One try; null if somebody else leads, this coordinator included. */
export async function tryLead(host: ElectionHost, name: string): Promise<Leadership | null> {
  const result = await host.take({ key: LEAD_PREFIX + name, waitMs: host.leaseMs, onlyIfFree: true })
  return result instanceof HeldTurn ? leadershipOf(name, result) : null
}

export class SessionElections extends LeaderElection {
  private readonly candidacies = new Set<SessionCandidacy>()

  constructor(private readonly host: ElectionHost) {
    super()
  }

  campaign(name: string, listener: CampaignListener): Candidacy {
    const candidacy = new SessionCandidacy(this.host, name, listener, () =>
      this.candidacies.delete(candidacy),
    )
    this.candidacies.add(candidacy)
    candidacy.begin()
    return candidacy
  }

  async stop(): Promise<void> {
    await Promise.all([...this.candidacies].map((candidacy) => candidacy.stop()))
  }

  /** As if the process had died: nobody is told. */
  crash(): void {
    for (const candidacy of this.candidacies) candidacy.crash()
    this.candidacies.clear()
  }
}

class SessionCandidacy implements Candidacy {
  private state: ElectionState = 'standing'
  private turn: HeldTurn | null = null
  private current: Leadership | null = null
  private giveUp: AbortController | null = null
  private pauseTimer: Timer | null = null
  private pauseMs = 0
  private silent = false
  /** The release that is under way, for those who wait for it. */
  private released: Promise<void> = Promise.resolve()

  constructor(
    private readonly host: ElectionHost,
    private readonly name: string,
    private readonly listener: CampaignListener,
    private readonly over: () => void,
  ) {}

  get leadership(): Leadership | null {
    return this.current
  }

  begin(): void {
    this.stand()
  }

  async resign(reason: FollowReason, pauseMs: number): Promise<void> {
    this.pauseMs = pauseMs
    this.step({ type: 'resigned', reason })
    await this.released
  }

  async stop(): Promise<void> {
    this.step({ type: 'stop' })
    this.over()
    await this.released
  }

  crash(): void {
    this.silent = true
    this.state = 'stopped'
    this.pauseTimer?.cancel()
    this.current = null
  }

  private step(event: ElectionEvent): void {
    const before = this.state
    const { state, effects } = electionStep(before, event)
    this.state = state
    for (const effect of effects) this.carryOut(effect)
  }

  private carryOut(effect: ElectionEffect): void {
    switch (effect.type) {
      case 'stand':
        return this.stand()
      case 'lead':
        if (this.turn) this.current = leadershipOf(this.name, this.turn)
        return this.tell((listener) => this.current && listener.onLead(this.current))
      case 'follow':
        return this.tell((listener) => listener.onFollow(effect.reason))
      case 'withdraw':
        this.pauseTimer?.cancel()
        this.giveUp?.abort(new CoordinationUnavailableError('stopped', { key: LEAD_PREFIX + this.name }))
        return
      case 'release':
        this.released = this.turn?.release() ?? Promise.resolve()
        this.turn = this.current = null
        return
      case 'pause':
        this.later(this.pauseMs, { type: 'pause-over' })
    }
  }

  private stand(): void {
    this.turn = this.current = null
    this.giveUp = new AbortController()
    const request: TicketRequest = {
      key: LEAD_PREFIX + this.name,
      waitMs: Infinity,
      signal: this.giveUp.signal,
      onQueued: () => this.step({ type: 'queued' }),
    }
    this.host.take(request).then(
      (result) => this.elected(result),
      (error: unknown) => this.failed(error),
    )
  }

  private elected(result: TakeResult): void {
    if (!(result instanceof HeldTurn)) return this.later(this.host.leaseMs / 3, { type: 'ticket-lost' })
    this.turn = result
    result.onLost = () => {
      if (this.turn !== result) return
      this.turn = this.current = null
      this.step({ type: 'lost' })
    }
    try {
      // Lost between the grant and now: the loss has been told already, to nobody.
      result.assertHeld()
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error
      this.turn = null
      return this.state === 'stopped' ? undefined : this.stand()
    }
    this.step({ type: 'granted' })
  }

  private failed(error: unknown): void {
    if (this.state === 'stopped') return
    this.host.logger.warn({ err: error, name: this.name }, 'could not stand for election; trying again')
    this.later(this.host.leaseMs / 3, { type: 'ticket-lost' })
  }

  private later(ms: number, event: ElectionEvent): void {
    this.pauseTimer?.cancel()
    this.pauseTimer = this.host.clock.setTimeout(() => this.step(event), ms, { background: true })
  }

  private tell(call: (listener: CampaignListener) => void): void {
    if (this.silent) return
    try {
      call(this.listener)
    } catch (error) {
      this.host.logger.error({ err: error, name: this.name }, 'a campaign listener threw')
    }
  }
}
