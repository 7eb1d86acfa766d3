/**
 * Hands granted tickets to the application as turns, and gives back what it never saw or no longer has. A turn is
 * never handed over with less than two thirds of a lease: a grant that comes when the last renewals have failed is
 * parked until one succeeds.
 */
import type { LeaseLostReason } from '../contracts/errors.js'
import type { Grant, Repair } from './coordination-backend.js'
import { HeldTurn, type TurnHost } from './held-turn.js'
import type { RepairQueue } from './repair-queue.js'
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
    const turn = new HeldTurn(grant, ticket.state, this.hostOf(ticket, session))
    ticket.status = 'held'
    ticket.turn = turn
    disarm(ticket)
    ticket.settle.resolve(turn)
  }

  private hostOf(ticket: Ticket, session: Session): TurnHost {
    const base = { session: session.name, key: ticket.request.key, ticket: ticket.id }
    return {
      trusted: () => this.options.keeper().trusted(session),
      release: (grant, firstTried) =>
        this.options.repairs.run(
          { kind: 'release', ...base, fence: grant.fence, ...noteOf(grant) },
          firstTried,
        ),
      commit: (grant, n, effects, release) =>
        this.options.repairs.run({
          kind: 'commit',
          ...base,
          fence: grant.fence,
          commitId: `${ticket.id}#${n}`,
          effects,
          release,
          leaseMs: this.options.leaseMs,
          ...noteOf(grant),
        }),
      ended: () => {
        ticket.status = 'done'
        this.options.forget(ticket)
      },
      refused: () => {
        this.options.forget(ticket)
        ticket.status = 'done'
        if (ticket.grant) this.giveBack(session, ticket.grant)
        this.tellLost(ticket.request.key, 'superseded')
      },
    }
  }

  lose(ticket: Ticket, reason: LeaseLostReason, silent = false): void {
    ticket.status = 'done'
    if (ticket.turn?.lose(reason) && !silent) this.tellLost(ticket.request.key, reason)
  }

  private tellLost(key: string, reason: LeaseLostReason): void {
    this.options.onLost({ key, reason })
  }

  giveBack(session: Session, grant: Grant): void {
    const { key, fence, ticket } = grant
    void this.options.repairs.run({
      kind: 'release',
      session: session.name,
      key,
      fence,
      ticket,
      ...noteOf(grant),
    })
  }

  withdraw(ticket: Ticket): void {
    if (!ticket.session) return
    const repair: Repair = {
      kind: 'withdraw',
      session: ticket.session.name,
      key: ticket.request.key,
      ticket: ticket.id,
    }
    void this.options.repairs.run(repair)
  }
}

function noteOf(grant: Grant): { note?: string } {
  return grant.note === undefined ? {} : { note: grant.note }
}
