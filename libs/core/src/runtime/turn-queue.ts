/**
 * The tickets and turns of one shard: takes in order, waits, grants, hand-over to the application, give-ups, and
 * reconciliation with what the backend says (docs/architecture/state-machines.md). States of a ticket: see `ticket.ts`.
 *
 * Three things may tell of a grant, in any order and more than once: the take's reply, a push, a heartbeat's or
 * nudge's reply. All come to `granted`, which compares fences. A grant that no ticket waits for is a ghost and is
 * given back. A late "queued" never undoes a grant.
 */
import { CoordinationUnavailableError, type LeaseLostReason } from '../contracts/errors.js'
import type { ChatState } from '../contracts/state-store.js'
import type {
  BackendContext,
  CoordinationBackend,
  Grant,
  HeldKey,
  NudgeReply,
} from './coordination-backend.js'
import { RepairQueue } from './repair-queue.js'
import type { AliveReply, BeatContent, Session, SessionKeeper } from './session-keeper.js'
import { TakeSender, type SettledTakeReply } from './take-sender.js'
import {
  announce,
  bound,
  disarm,
  heed,
  newTicket,
  type TakeResult,
  type Ticket,
  type TicketRequest,
} from './ticket.js'
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
  private readonly sender: TakeSender
  private readonly room: WaitingRoom
  private stopped = false

  constructor(
    backend: CoordinationBackend,
    private readonly context: BackendContext,
    maxPollMs: number,
    private readonly keeper: () => SessionKeeper,
    onLost: LostListener,
  ) {
    this.repairs = new RepairQueue(backend, context)
    this.issuer = new TurnIssuer({
      leaseMs: context.leaseMs,
      keeper,
      repairs: this.repairs,
      forget: (ticket) => this.registry.forget(ticket),
      onLost,
    })
    this.sender = new TakeSender({
      backend,
      context,
      keeper,
      registry: this.registry,
      answered: (ticket, session, reply) => this.answered(ticket, session, reply),
      delayed: (ticket) => this.bound(ticket),
      refused: (ticket, error) => {
        if (ticket.status !== 'done') this.settleError(ticket, error)
      },
      abandoned: (ticket) => this.issuer.withdraw(ticket),
    })
    const nudged = (ticket: Ticket, reply: NudgeReply): void => this.nudged(ticket, reply)
    this.room = new WaitingRoom({ backend, context, keeper, maxPollMs, nudged })
  }

  /** See `TurnQueue.take`. */
  take(request: TicketRequest): Promise<TakeResult> {
    return new Promise((resolve, reject) => {
      if (request.signal?.aborted) return reject(request.signal.reason as Error)
      if (this.stopped) return reject(new CoordinationUnavailableError('stopped', { key: request.key }))
      const ticket = newTicket(request, { resolve, reject }, this.context.clock.monotonic())
      heed(ticket, (error) => this.giveUp(ticket, error))
      if (this.registry.join(ticket)) this.sender.send(ticket)
      // A take that is answered at once needs no timer, and an answer is never longer in coming than a call may take.
      const patient = request.waitMs >= 2 * this.context.callTimeoutMs
      if (!patient || ticket.status !== 'asking') this.bound(ticket)
    })
  }

  private bound(ticket: Ticket): void {
    if (ticket.status === 'done' || ticket.status === 'held') return
    bound(ticket, this.context.clock, (error) => this.giveUp(ticket, error))
  }

  /** Takes are accepted (again). */
  begin(): void {
    this.stopped = false
  }

  opened(): void {
    this.sender.sendUnsent()
  }

  /** Nothing under the lost session is ours any more; what nobody saw yet is taken again under the next. */
  lost(session: Session, reason: LeaseLostReason): void {
    this.room.clear()
    this.issuer.clear()
    this.sender.clear()
    const { first, held } = this.registry.reset()
    for (const ticket of held) this.issuer.lose(ticket, reason)
    this.repairs.abandon(session.name)
    first.forEach((ticket) => this.sender.send(ticket))
    this.registry.unsettled().forEach((ticket) => this.bound(ticket))
  }

  /** No session can be had. */
  refused(error: Error): void {
    for (const ticket of this.registry.unsettled()) this.settleError(ticket, error)
    this.registry.reset()
    this.sender.clear()
  }

  /** Settles everything: takes reject, turns are lost. */
  async stop(options: { waitMs: number; silent: boolean }): Promise<void> {
    this.stopped = true
    for (const ticket of this.registry.unsettled()) {
      this.settleError(ticket, new CoordinationUnavailableError('stopped', { key: ticket.request.key }))
    }
    this.room.clear()
    this.sender.clear()
    this.issuer.clear()
    // A commit under way is not cut: its effects decide what the next replica finds.
    if (options.waitMs > 0) await this.repairs.drained(options.waitMs)
    const { held } = this.registry.reset()
    for (const ticket of held) this.issuer.lose(ticket, 'stopped', options.silent)
    const session = this.keeper().current
    if (session) this.repairs.abandon(session.name)
  }

  beatContent(): BeatContent {
    const held = this.registry.held()
    const waiting = this.room.nextInTurn().map((ticket) => ({ key: ticket.request.key, ticket: ticket.id }))
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
    this.sender.sendUnsent()
  }

  reconnected(): void {
    this.repairs.hurry()
    this.sender.hurry()
  }

  pushLive(live: boolean): void {
    this.room.setPushLive(live)
  }

  private answered(ticket: Ticket, session: Session, reply: SettledTakeReply): void {
    // Back in line since a heartbeat's answer: then this grant is nobody's.
    const own = ticket.session === session ? ticket : undefined
    if (reply.outcome === 'granted') return this.grantedTo(own, session, reply.grant, reply.state)
    // Given up meanwhile: now it is known to stand in line.
    if (ticket.status === 'done' && reply.outcome === 'queued') return this.issuer.withdraw(ticket)
    // A push overtook the reply: a late "queued" never undoes a grant.
    if (ticket.status !== 'asking') return
    const { key, onlyIfFree } = ticket.request
    switch (reply.outcome) {
      case 'queued':
        if (onlyIfFree) return this.settle(ticket, 'taken')
        ticket.status = 'waiting'
        this.bound(ticket)
        this.room.behind(ticket, reply.holder, reply.holderLeftMs)
        announce(ticket, this.context.logger)
        ticket.request.onQueued?.()
        return
      case 'duplicate':
        return this.settle(ticket, 'duplicate')
      case 'overflow':
        return this.settleError(ticket, new CoordinationUnavailableError('overflow', { key }))
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
        if (this.registry.rejoin(ticket)) this.sender.send(ticket)
    }
  }

  /** A waiting ticket was dropped because its message is committed by now. */
  duplicate(sessionName: string, id: string): void {
    const ticket = this.registry.get(id)
    if (!ticket || ticket.session?.name !== sessionName || ticket.session !== this.keeper().current) return
    if (ticket.status !== 'waiting' && ticket.status !== 'asking') return
    this.settle(ticket, 'duplicate')
    this.sender.free(ticket)
  }

  granted(sessionName: string, grant: Grant): void {
    const session = this.keeper().current
    if (session?.name === sessionName) this.grantedTo(this.registry.get(grant.ticket), session, grant)
  }

  private grantedTo(ticket: Ticket | undefined, session: Session, grant: Grant, state?: ChatState): void {
    this.floor = Math.max(this.floor, grant.fence)
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
    announce(ticket, this.context.logger)
    // If it overtook the reply of its take, the next one of the key waits for that reply; if no reply is to come, not.
    this.sender.free(ticket)
    this.issuer.issue(ticket)
    if (!ticket.turn) this.bound(ticket)
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
      if (this.registry.rejoin(ticket)) this.sender.send(ticket)
    }
  }

  private giveUp(ticket: Ticket, error: unknown): void {
    const { status: was, session, grant } = ticket
    if (was === 'held' || was === 'done') return
    this.settleError(ticket, error)
    if (was === 'line') {
      // The first of its key that could not be sent yet holds the place of the unanswered one.
      if (!this.sender.free(ticket)) this.registry.leaveLine(ticket)
    } else if (was === 'asking') {
      // Its fate is open: withdrawn when it is answered. If no answer is to come, now.
      if (this.sender.free(ticket)) this.issuer.withdraw(ticket)
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
}
