/**
 * The tickets and turns of one shard: takes in order, waits, grants, hand-over to the application, give-ups, and
 * reconciliation with what the backend says (DESIGN 3, "Turn"). States of a ticket: see `ticket.ts`.
 *
 * Three things may tell of a grant, in any order and more than once: the take's reply, a push, a heartbeat's or
 * nudge's reply. All come to `granted`, which compares fences. A grant that no ticket waits for is a ghost and is
 * given back. A late "queued" never undoes a grant.
 */
import { CoordinationUnavailableError, type LeaseLostReason } from '../contracts/errors.js'
import type { Timer } from '../contracts/clock.js'
import type { ChatState } from '../contracts/state-store.js'
import { Backoff } from './backoff.js'
import type {
  BackendContext,
  CoordinationBackend,
  Grant,
  HeldKey,
  NudgeReply,
  TakeReply,
  TakeRequest,
} from './coordination-backend.js'
import { RepairQueue } from './repair-queue.js'
import type { AliveReply, BeatContent, Session, SessionKeeper } from './session-keeper.js'
import { disarm, newTicket, type TakeResult, type Ticket, type TicketRequest } from './ticket.js'
import { TicketRegistry } from './ticket-registry.js'
import { TurnIssuer, type LostListener } from './turn-issuer.js'
import { WaitingRoom } from './waiting-room.js'

export type { LostListener } from './turn-issuer.js'

export class ShardTurns {
  /** Highest fence seen. */
  floor = 0
  private readonly registry = new TicketRegistry()
  private readonly repairs: RepairQueue
  private readonly issuer: TurnIssuer
  private readonly room: WaitingRoom
  /** May be sent, but there is no session, or the last attempt's fate is unknown. */
  private readonly unsent = new Set<Ticket>()
  private retryTimer: Timer | null = null
  private readonly retryPause: Backoff
  private stopped = false

  constructor(
    private readonly backend: CoordinationBackend,
    private readonly context: BackendContext,
    maxPollMs: number,
    private readonly keeper: () => SessionKeeper,
    onLost: LostListener,
  ) {
    this.repairs = new RepairQueue(backend, context)
    const { leaseMs } = context
    this.issuer = new TurnIssuer({
      leaseMs,
      keeper,
      repairs: this.repairs,
      forget: (ticket) => this.registry.forget(ticket),
      onLost,
    })
    this.retryPause = new Backoff(context.random, 20, leaseMs / 6)
    const lookAgainMs = leaseMs / 6
    this.room = new WaitingRoom(context.clock, maxPollMs, lookAgainMs, (tickets) => void this.nudge(tickets))
  }

  /** See `TurnQueue.take`. */
  take(request: TicketRequest): Promise<TakeResult> {
    return new Promise((resolve, reject) => {
      if (request.signal?.aborted) return reject(request.signal.reason as Error)
      if (this.stopped) return reject(new CoordinationUnavailableError('stopped', { key: request.key }))
      const ticket = newTicket(request, { resolve, reject }, this.context.clock.monotonic())
      if (Number.isFinite(request.waitMs)) {
        const late = (): void => this.giveUp(ticket, this.lateError(ticket))
        ticket.timer = this.context.clock.setTimeout(late, request.waitMs)
      }
      if (request.signal) {
        ticket.onAbort = () => this.giveUp(ticket, request.signal?.reason)
        request.signal.addEventListener('abort', ticket.onAbort, { once: true })
      }
      if (this.registry.join(ticket)) this.ask(ticket)
    })
  }

  // --- the session's life (called by the keeper) ---------------------------------------------------------------

  /** Takes are accepted (again). */
  begin(): void {
    this.stopped = false
  }

  opened(): void {
    this.askUnsent()
  }

  /** Nothing under the lost session is ours any more; what nobody saw yet is taken again under the next. */
  lost(session: Session, reason: LeaseLostReason): void {
    this.room.clear()
    this.issuer.clear()
    this.unsent.clear()
    const { first, held } = this.registry.reset()
    for (const ticket of held) this.issuer.lose(ticket, reason)
    this.repairs.abandon(session.name)
    first.forEach((ticket) => this.ask(ticket))
  }

  /** No session can be had. */
  refused(error: Error): void {
    for (const ticket of this.registry.unsettled()) this.settleError(ticket, error)
    this.registry.reset()
    this.unsent.clear()
  }

  /** Settles everything: takes reject, turns are lost. */
  async stop(options: { waitMs: number; silent: boolean }): Promise<void> {
    this.stopped = true
    this.retryTimer?.cancel()
    this.retryTimer = null
    for (const ticket of this.registry.unsettled()) {
      this.settleError(ticket, new CoordinationUnavailableError('stopped', { key: ticket.request.key }))
    }
    this.room.clear()
    this.unsent.clear()
    this.issuer.clear()
    // A commit under way is not cut: its effects decide what the next replica finds.
    if (options.waitMs > 0) await this.repairs.drained(options.waitMs)
    const { held } = this.registry.reset()
    for (const ticket of held) this.issuer.lose(ticket, 'stopped', options.silent)
    const session = this.keeper().current
    if (session) this.repairs.abandon(session.name)
  }

  beatContent(): BeatContent {
    const held: HeldKey[] = []
    for (const ticket of this.registry.all) {
      if (!ticket.grant) continue
      held.push({ key: ticket.request.key, fence: ticket.grant.fence, ticket: ticket.id })
    }
    const waiting = [...this.room.tickets].map((ticket) => ({ key: ticket.request.key, ticket: ticket.id }))
    return { held, waiting, repairs: this.repairs.snapshot(), floor: this.floor }
  }

  /** Reconciliation (I10): what got lost on the way is found and repaired here, at the latest. */
  beaten(session: Session, sent: BeatContent, reply: AliveReply): void {
    this.repairs.answered(sent.repairs, reply.repairs)
    for (const one of reply.missing) this.notHeld(one)
    for (const grant of reply.unknown) this.granted(session.name, grant)
    sent.waiting.forEach((one, index) => {
      const ticket = this.registry.get(one.ticket)
      const answer = reply.waiting[index]
      if (ticket && answer) this.nudged(ticket, answer)
    })
    this.issuer.renewed()
    this.askUnsent()
  }

  reconnected(): void {
    this.repairs.hurry()
    this.retryPause.reset()
    this.askUnsent()
  }

  pushLive(live: boolean): void {
    this.room.setPushLive(live)
  }

  // --- asking ----------------------------------------------------------------------------------------------------

  private ask(ticket: Ticket): void {
    const session = this.keeper().current
    if (!session) {
      this.unsent.add(ticket)
      this.keeper().ensure()
      return
    }
    this.registry.enter(ticket, session)
    ticket.status = 'asking'
    const { request, id } = ticket
    const take: TakeRequest = { session: session.name, key: request.key, ticket: id }
    if (request.dedupeId !== undefined) take.dedupeId = request.dedupeId
    if (request.read !== undefined) take.read = request.read
    if (request.arrival !== undefined) take.arrival = request.arrival
    if (request.onlyIfFree) take.onlyIfFree = true
    this.backend
      .take(take)
      .then(
        (reply) => this.answered(ticket, session, id, reply),
        (error: unknown) => this.unanswered(ticket, session, id, error),
      )
      .catch((error: unknown) => this.context.logger.error({ err: error }, 'a take could not be worked off'))
  }

  private answered(ticket: Ticket, session: Session, id: string, reply: TakeReply): void {
    // Of an incarnation that is over: whatever it was ended with it.
    if (session !== this.keeper().current || ticket.id !== id) return
    this.retryPause.reset()
    if (reply.outcome === 'session-lost') return this.keeper().reportGone(session)
    const given = ticket.status === 'done'
    if (given && reply.outcome === 'queued') this.issuer.withdraw(ticket)
    else if (reply.outcome === 'granted') this.granted(session.name, reply.grant, reply.state)
    else if (ticket.status === 'asking') this.notGranted(ticket, reply)
    this.askNext(ticket, session)
  }

  private notGranted(
    ticket: Ticket,
    reply: Exclude<TakeReply, { outcome: 'granted' | 'session-lost' }>,
  ): void {
    switch (reply.outcome) {
      case 'queued':
        if (ticket.request.onlyIfFree) return this.settle(ticket, 'taken')
        ticket.status = 'waiting'
        this.room.behind(ticket, reply.holder, reply.holderLeftMs)
        this.announce(ticket)
        ticket.request.onQueued?.()
        return
      case 'duplicate':
        return this.settle(ticket, 'duplicate')
      case 'overflow':
        return this.settleError(
          ticket,
          new CoordinationUnavailableError('overflow', { key: ticket.request.key }),
        )
    }
  }

  private unanswered(ticket: Ticket, session: Session, id: string, error: unknown): void {
    if (session !== this.keeper().current || ticket.id !== id) return
    if (!(error instanceof CoordinationUnavailableError)) {
      if (ticket.status !== 'done') this.settleError(ticket, error)
      return this.askNext(ticket, session)
    }
    if (ticket.status === 'done') this.issuer.withdraw(ticket)
    // Given up, or granted by a push meanwhile: that was the answer.
    if (ticket.status !== 'asking') return this.askNext(ticket, session)
    this.unsent.add(ticket)
    this.retryTimer ??= this.context.clock.setTimeout(() => this.askUnsent(), this.retryPause.next(), {
      background: true,
    })
  }

  private askNext(ticket: Ticket, session: Session | null): void {
    // Lost while it was being answered: the lines have begun anew.
    if (session !== this.keeper().current) return
    const next = this.registry.answered(ticket)
    if (next) this.ask(next)
  }

  private askUnsent(): void {
    this.retryTimer?.cancel()
    this.retryTimer = null
    const tickets = [...this.unsent]
    this.unsent.clear()
    for (const ticket of tickets) {
      if (ticket.status === 'line' || ticket.status === 'asking') this.ask(ticket)
    }
  }

  private async nudge(tickets: Ticket[]): Promise<void> {
    const session = this.keeper().current
    if (!session) return
    const waiting = tickets.map((ticket) => ({ key: ticket.request.key, ticket: ticket.id }))
    try {
      const replies = await this.backend.nudge(session.name, waiting)
      if (session !== this.keeper().current) return
      tickets.forEach((ticket, index) => {
        const reply = replies[index]
        if (reply && ticket.id === waiting[index]?.ticket) this.nudged(ticket, reply)
      })
    } catch (error) {
      this.context.logger.debug({ err: error }, 'a nudge was not answered; the next heartbeat repeats it')
    }
  }

  private nudged(ticket: Ticket, reply: NudgeReply): void {
    if (ticket.status !== 'waiting' || !ticket.session) return
    switch (reply.outcome) {
      case 'granted':
        return this.granted(ticket.session.name, reply.grant)
      case 'queued':
        return this.room.behind(ticket, reply.holder, reply.holderLeftMs)
      case 'duplicate':
        return this.settle(ticket, 'duplicate')
      case 'session-lost':
        return this.keeper().reportGone(ticket.session)
      case 'unknown':
        this.room.leave(ticket)
        ticket.status = 'line'
        if (this.registry.rejoin(ticket)) this.ask(ticket)
    }
  }

  /** A waiting ticket was dropped because its message is committed by now. */
  duplicate(sessionName: string, id: string): void {
    const ticket = this.registry.get(id)
    if (!ticket || ticket.session?.name !== sessionName || ticket.session !== this.keeper().current) return
    if (ticket.status !== 'waiting' && ticket.status !== 'asking') return
    this.settle(ticket, 'duplicate')
    if (this.unsent.delete(ticket)) this.askNext(ticket, ticket.session)
  }

  // --- grants ------------------------------------------------------------------------------------------------------

  granted(sessionName: string, grant: Grant, state?: ChatState): void {
    const session = this.keeper().current
    if (session?.name !== sessionName) return
    this.floor = Math.max(this.floor, grant.fence)
    const ticket = this.registry.get(grant.ticket)
    if (!ticket || ticket.status === 'done') return this.issuer.giveBack(session, grant)
    // Fences are compared, never ticket ids alone.
    if (ticket.grant) {
      if (ticket.grant.fence !== grant.fence) this.issuer.giveBack(session, grant)
      return
    }
    this.room.leave(ticket)
    if (ticket.status === 'line') this.registry.leaveLine(ticket)
    ticket.grant = grant
    ticket.state = state
    ticket.status = 'granted'
    this.announce(ticket)
    // If it overtook the reply of its take, the next one of the key waits for that reply; if no reply is to come, not.
    if (this.unsent.delete(ticket)) this.askNext(ticket, session)
    this.issuer.issue(ticket)
  }

  /** The backend does not hold for us what we work under. */
  private notHeld(one: HeldKey): void {
    const ticket = this.registry.get(one.ticket)
    if (!ticket || ticket.grant?.fence !== one.fence) return
    if (ticket.status === 'held' && ticket.turn) {
      // A release or commit under way may just have ended it: its own answer tells.
      if (ticket.turn.ending) return
      this.registry.forget(ticket)
      this.issuer.lose(ticket, 'revoked')
    } else if (ticket.status === 'granted') {
      this.issuer.unpark(ticket)
      this.registry.forget(ticket)
      Object.assign(ticket, { status: 'line', session: null, grant: null })
      if (this.registry.rejoin(ticket)) this.ask(ticket)
    }
  }

  // --- settling ----------------------------------------------------------------------------------------------------

  private giveUp(ticket: Ticket, error: unknown): void {
    const was = ticket.status
    if (was === 'held' || was === 'done') return
    const { session, grant } = ticket
    this.settleError(ticket, error)
    if (was === 'line') {
      // The first of its key that could not be sent yet holds the place of the unanswered one.
      this.unsent.delete(ticket)
      if (this.registry.isAsking(ticket)) this.askNext(ticket, this.keeper().current)
      else this.registry.leaveLine(ticket)
    } else if (was === 'asking') {
      // Its fate is open: withdrawn when it is answered. If nobody is asking any more, now.
      if (this.unsent.delete(ticket)) {
        this.issuer.withdraw(ticket)
        this.askNext(ticket, session)
      }
    } else if (was === 'waiting') {
      this.issuer.withdraw(ticket)
    } else if (session && grant) {
      this.issuer.giveBack(session, grant)
    }
  }

  private settle(ticket: Ticket, result: TakeResult): void {
    this.finish(ticket)
    ticket.settle.resolve(result)
  }

  private settleError(ticket: Ticket, error: unknown): void {
    this.finish(ticket)
    ticket.settle.reject(error)
  }

  private finish(ticket: Ticket): void {
    this.room.leave(ticket)
    this.issuer.unpark(ticket)
    this.registry.forget(ticket)
    disarm(ticket)
    ticket.status = 'done'
  }

  private announce(ticket: Ticket): void {
    if (ticket.announced) return
    ticket.announced = true
    try {
      ticket.request.onTicket?.()
    } catch (error) {
      this.context.logger.error({ err: error, key: ticket.request.key }, 'onTicket threw')
    }
  }

  private lateError(ticket: Ticket): Error {
    const waitedMs = Math.round(this.context.clock.monotonic() - ticket.since)
    const why = ticket.announced ? 'timeout' : 'unreachable'
    return new CoordinationUnavailableError(why, { key: ticket.request.key, waitedMs })
  }
}
