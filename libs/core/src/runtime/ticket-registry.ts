/**
 * What this replica knows locally of its tickets: by id (also those whose turn it works under), and per key the
 * calls that are not answered yet, in the order they were made (T2: at most one unanswered take per key, so that
 * a resent one cannot be overtaken).
 */
import { CounterTable, KeyTable } from './churn-tables.js'
import { ticketId, ticketNumber, type HeldKey } from './coordination-backend.js'
import type { Session } from './session-keeper.js'
import type { Ticket } from './ticket.js'
import { TicketLine } from './ticket-line.js'

export class TicketRegistry {
  private readonly known = new CounterTable<Ticket>()
  /** The unanswered take of each key ... */
  private readonly asking = new KeyTable<Ticket>()
  /** ... and those behind it, where there are any. */
  private readonly behind = new Map<string, TicketLine<Ticket>>()
  private counter = 0

  get(id: string): Ticket | undefined {
    const ticket = this.known.get(Number.parseInt(id.slice(id.lastIndexOf(':') + 1), 36))
    return ticket?.id === id ? ticket : undefined
  }

  /** Every grant that is not over: also those that the application has not seen yet or is giving back. */
  held(): HeldKey[] {
    const held: HeldKey[] = []
    for (const { request, grant, id } of this.known.values()) {
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
    ticket.number = ticketNumber(this.counter)
    ticket.id = ticketId(session.name, ticket.number)
    this.known.set(ticket)
  }

  forget(ticket: Ticket): void {
    this.known.delete(ticket)
  }

  /** Joins the line of its key. @returns true if it may be sent now. */
  join(ticket: Ticket): boolean {
    const { key } = ticket.request
    if (this.asking.get(key) === undefined) {
      this.asking.set(key, ticket)
      return true
    }
    this.lineOf(key).push(ticket)
    return false
  }

  private lineOf(key: string): TicketLine<Ticket> {
    let line = this.behind.get(key)
    if (!line) {
      line = new TicketLine<Ticket>()
      this.behind.set(key, line)
    }
    return line
  }

  /** Comes back to the line before those that were made later. @returns true if it may be sent now. */
  rejoin(ticket: Ticket): boolean {
    const { key } = ticket.request
    if (this.asking.get(key) === undefined) return this.join(ticket)
    this.lineOf(key).pushBack(ticket)
    return false
  }

  /** The unanswered take was answered. @returns the next one of its key, to be sent now. */
  answered(ticket: Ticket): Ticket | undefined {
    const { key } = ticket.request
    if (this.asking.get(key) !== ticket) return undefined
    const line = this.behind.size === 0 ? undefined : this.behind.get(key)
    const next = line?.shift()
    if (next) this.asking.set(key, next)
    else this.asking.delete(key)
    if (line?.empty) this.behind.delete(key)
    return next ?? undefined
  }

  /** A call in line was given up. */
  leaveLine(ticket: Ticket): void {
    const { line } = ticket
    line?.remove(ticket)
    if (line?.empty) this.behind.delete(ticket.request.key)
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
    for (const ticket of this.known.values()) {
      if (ticket.status === 'held') held.push(ticket)
      else if (ticket.status !== 'done') put(ticket)
    }
    // Not yet sent, so not known by an id.
    for (const ticket of this.inLine()) if (ticket.session === null && ticket.status !== 'done') put(ticket)
    this.known.clear()
    this.asking.clear()
    this.behind.clear()
    const first: Ticket[] = []
    for (const tickets of back.values()) {
      for (const ticket of tickets) {
        ticket.status = 'line'
        ticket.session = null
        ticket.grant = null
        ticket.n = 0
        ticket.line = ticket.previous = ticket.next = null
        if (this.join(ticket)) first.push(ticket)
      }
    }
    return { first, held }
  }

  /** Every ticket that is not settled, for a stop. */
  unsettled(): Ticket[] {
    const all = new Set<Ticket>([...this.known.values(), ...this.inLine()])
    return [...all].filter((ticket) => ticket.status !== 'held' && ticket.status !== 'done')
  }

  /** Per key the unanswered one, then those behind it. */
  private inLine(): Ticket[] {
    return this.asking.values().flatMap((ticket) => [ticket, ...(this.behind.get(ticket.request.key) ?? [])])
  }
}
