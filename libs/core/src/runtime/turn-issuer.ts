/**
 * Hands granted tickets to the application as turns, and gives back what it never saw or no longer has. A turn is
 * never handed over with less than two thirds of a lease: a grant that comes when the last renewals have failed is
 * parked until one succeeds.
 */
import type { LeaseLostReason } from '../contracts/errors.js'
import type { Effects } from '../contracts/state-store.js'
import type { Grant, Repair } from './coordination-backend.js'
import { HeldTurn, type TurnHost } from './held-turn.js'
import type { RepairEnd, RepairQueue } from './repair-queue.js'
import type { Session, SessionKeeper } from './session-keeper.js'
import { disarm, type Ticket } from './ticket.js'

export type LostListener = (lost: { key: string; reason: LeaseLostReason }) => void

export interface TurnIssuerOptions {
  leaseMs: number
  keeper: () => SessionKeeper
  repairs: RepairQueue
  /** The ticket is over: no longer known by its id. */
  forget: (ticket: Ticket) => void
  onLost: LostListener
}

export class TurnIssuer {
  private readonly parked = new Set<Ticket>()

  constructor(private readonly options: TurnIssuerOptions) {}

  /** The session was renewed: what was parked may go out. */
  renewed(): void {
    for (const ticket of [...this.parked]) this.issue(ticket)
  }

  unpark(ticket: Ticket): void {
    this.parked.delete(ticket)
  }

  clear(): void {
    this.parked.clear()
  }

  issue(ticket: Ticket): void {
    const { session, grant } = ticket
    if (ticket.status !== 'granted' || !session || !grant) return
    if (!this.options.keeper().enoughToHandOver(session)) {
      if (session !== this.options.keeper().current) return
      this.parked.add(ticket)
      void this.options.keeper().renew()
      return
    }
    this.parked.delete(ticket)
    const turn = new HeldTurn(grant, ticket.state, new IssuedTurn(this, this.options, ticket, session, grant))
    ticket.status = 'held'
    ticket.turn = turn
    disarm(ticket)
    ticket.settle.resolve(turn)
  }

  /** The turn is over: nothing is known of its ticket any more. */
  ended(ticket: Ticket): void {
    ticket.status = 'done'
    this.options.forget(ticket)
  }

  /** A commit was refused: somebody else has written. What is still held of it, if anything, is given back. */
  refused(ticket: Ticket, session: Session, grant: Grant): void {
    this.ended(ticket)
    this.giveBack(session, grant)
    this.tellLost(ticket.request.key, 'superseded')
  }

  lose(ticket: Ticket, reason: LeaseLostReason, silent = false): void {
    ticket.status = 'done'
    if (ticket.turn?.lose(reason) && !silent) this.tellLost(ticket.request.key, reason)
  }

  private tellLost(key: string, reason: LeaseLostReason): void {
    this.options.onLost({ key, reason })
  }

  giveBack(session: Session, grant: Grant): void {
    this.options.repairs.run(releaseOf(session, grant), ignored)
  }

  withdraw(ticket: Ticket): void {
    if (!ticket.session) return
    const repair: Repair = {
      kind: 'withdraw',
      session: ticket.session.name,
      key: ticket.request.key,
      ticket: ticket.id,
    }
    this.options.repairs.run(repair, ignored)
  }
}

/** What a turn in the application's hands asks of its shard. One small object a turn: this is the fast path. */
class IssuedTurn implements TurnHost {
  constructor(
    private readonly issuer: TurnIssuer,
    private readonly options: TurnIssuerOptions,
    private readonly ticket: Ticket,
    private readonly session: Session,
    private readonly grant: Grant,
  ) {}

  trusted(): boolean {
    return this.options.keeper().trusted(this.session)
  }

  release(ended: () => void, firstTried: () => void, unused: boolean): void {
    const { previousHolder } = this.grant
    const release = releaseOf(this.session, this.grant)
    this.options.repairs.run(unused ? { ...release, previousHolder } : release, ended, firstTried)
  }

  commit(n: number, effects: Effects, release: boolean, ended: (end: RepairEnd) => void): void {
    const { leaseMs, repairs } = this.options
    const { key, fence, ticket, note } = this.grant
    const commitId = `${ticket}#${n}`
    // One literal: it is made for every message, and spreading one object into another costs more than all else here.
    const repair: Repair & { kind: 'commit' } = {
      kind: 'commit',
      session: this.session.name,
      key,
      fence,
      ticket,
      commitId,
      nth: n,
      effects,
      release,
      leaseMs,
    }
    if (note !== undefined) repair.note = note
    repairs.run(repair, ended)
  }

  ended(): void {
    this.issuer.ended(this.ticket)
  }

  refused(): void {
    this.issuer.refused(this.ticket, this.session, this.grant)
  }
}

function releaseOf(session: Session, { key, fence, ticket, note }: Grant): Repair & { kind: 'release' } {
  return note === undefined
    ? { kind: 'release', session: session.name, key, fence, ticket }
    : { kind: 'release', session: session.name, key, fence, ticket, note }
}

/** Nobody waits for this repair. */
function ignored(): void {}
