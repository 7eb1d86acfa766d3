/** The calls of one key that wait for the unanswered one before them: first come first served, every step O(1). */
import type { Ticket } from './ticket.js'

export class TicketLine {
  private head: Ticket | null = null
  private tail: Ticket | null = null

  get empty(): boolean {
    return this.head === null
  }

  push(ticket: Ticket): void {
    this.insert(ticket, this.tail, null)
  }

  /** Comes back before those that were sent later or not at all. Few ever do, and they belong to the front. */
  pushBack(ticket: Ticket): void {
    let before = this.head
    while (before && before.n !== 0 && before.n < ticket.n) before = before.next
    this.insert(ticket, before ? before.previous : this.tail, before)
  }

  shift(): Ticket | null {
    const first = this.head
    if (first) this.remove(first)
    return first
  }

  /** False if it does not stand here. */
  remove(ticket: Ticket): boolean {
    if (ticket.line !== this) return false
    if (ticket.previous) ticket.previous.next = ticket.next
    else this.head = ticket.next
    if (ticket.next) ticket.next.previous = ticket.previous
    else this.tail = ticket.previous
    ticket.previous = ticket.next = ticket.line = null
    return true
  }

  *[Symbol.iterator](): IterableIterator<Ticket> {
    for (let ticket = this.head; ticket; ticket = ticket.next) yield ticket
  }

  private insert(ticket: Ticket, previous: Ticket | null, next: Ticket | null): void {
    ticket.line = this
    ticket.previous = previous
    ticket.next = next
    if (previous) previous.next = ticket
    else this.head = ticket
    if (next) next.previous = ticket
    else this.tail = ticket
  }
}
