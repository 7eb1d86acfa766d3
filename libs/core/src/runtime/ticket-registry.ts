/**
 * What this replica knows locally of its tickets: by id (also those whose turn it works under), and per key the
 * calls that are not answered yet, in the order they were made (T2: at most one unanswered take per key, so that
 * a resent one cannot be overtaken).
 */
import { ticketId, type HeldKey } from './coordination-backend.js'
import type { Session } from './session-keeper.js'
import type { Ticket } from './ticket.js'

interface KeyLine {
  asking: Ticket | null
  line: Ticket[]
}

export class TicketRegistry {
  private readonly byId = new Map<string, Ticket>()
  private readonly lines = new Map<string, KeyLine>()
  private counter = 0

  get(id: string): Ticket | undefined {
    return this.byId.get(id)
  }

  /** Every grant that is not over: also those that the application has not seen yet or is giving back. */
  held(): HeldKey[] {
    const held: HeldKey[] = []
    for (const { request, grant, id } of this.byId.values()) {
      if (grant) held.push({ key: request.key, fence: grant.fence, ticket: id })
    }
    return held
  }

  /** Gives the ticket its id under `session`; a ticket that has one under it keeps it. */
  enter(ticket: Ticket, session: Session): void {
    if (ticket.session === session) return
    this.counter += 1
    ticket.session = session
    ticket.n = this.counter
    ticket.id = ticketId(session.name, this.counter)
    this.byId.set(ticket.id, ticket)
  }

  forget(ticket: Ticket): void {
    if (this.byId.get(ticket.id) === ticket) this.byId.delete(ticket.id)
  }

  /** Joins the line of its key. @returns true if it may be sent now. */
  join(ticket: Ticket): boolean {
    const line = this.lines.get(ticket.request.key)
    if (!line) {
      this.lines.set(ticket.request.key, { asking: ticket, line: [] })
      return true
    }
    line.line.push(ticket)
    return false
  }

  /** Comes back to the line before those that were made later. @returns true if it may be sent now. */
  rejoin(ticket: Ticket): boolean {
    const line = this.lines.get(ticket.request.key)
    if (!line) return this.join(ticket)
    const place = line.line.findIndex((other) => other.n === 0 || other.n > ticket.n)
    line.line.splice(place < 0 ? line.line.length : place, 0, ticket)
    return false
  }

  /** The unanswered take was answered. @returns the next one of its key, to be sent now. */
  answered(ticket: Ticket): Ticket | undefined {
    const line = this.lines.get(ticket.request.key)
    if (!line || line.asking !== ticket) return undefined
    const next = line.line.shift()
    if (next) line.asking = next
    else this.lines.delete(ticket.request.key)
    return next
  }

  /** A call in line was given up. */
  leaveLine(ticket: Ticket): void {
    const line = this.lines.get(ticket.request.key)
    const place = line?.line.indexOf(ticket) ?? -1
    if (place >= 0) line?.line.splice(place, 1)
  }

  /**
   * The session is gone: every ticket that the application has not seen a turn of goes back to its key's line, in
   * the order of the calls. @returns those to be sent first, and those whose turn is lost.
   */
  reset(): { first: Ticket[]; held: Ticket[] } {
    const held: Ticket[] = []
    const back = new Map<string, Ticket[]>()
    const put = (ticket: Ticket): void => {
      const tickets = back.get(ticket.request.key)
      if (tickets) tickets.push(ticket)
      else back.set(ticket.request.key, [ticket])
    }
    for (const ticket of this.byId.values()) {
      if (ticket.status === 'held') held.push(ticket)
      else if (ticket.status !== 'done') put(ticket)
    }
    for (const { asking, line } of this.lines.values()) {
      // Not yet sent: not in `byId`.
      if (asking && asking.session === null && asking.status !== 'done') put(asking)
      for (const ticket of line) if (ticket.session === null && ticket.status !== 'done') put(ticket)
    }
    this.byId.clear()
    this.lines.clear()
    const first: Ticket[] = []
    for (const tickets of back.values()) {
      for (const ticket of tickets) {
        ticket.status = 'line'
        ticket.session = null
        ticket.grant = null
        ticket.n = 0
        if (this.join(ticket)) first.push(ticket)
      }
    }
    return { first, held }
  }

  /** Every ticket that is not settled, for a stop. */
  unsettled(): Ticket[] {
    const all = new Set<Ticket>(this.byId.values())
    for (const { asking, line } of this.lines.values()) {
      if (asking) all.add(asking)
      line.forEach((ticket) => all.add(ticket))
    }
    return [...all].filter((ticket) => ticket.status !== 'held' && ticket.status !== 'done')
  }
}
