/** The calls of one key that wait for the unanswered one before them: first come first served, every step O(1). */

/** What stands in a line carries its neighbours, so that it can leave from anywhere. */
export interface InLine<T> {
  /** Order in which it was first sent; 0 if it never was. */
  readonly n: number
  line: object | null
  previous: T | null
  next: T | null
}

export class TicketLine<T extends InLine<T>> {
  private head: T | null = null
  private tail: T | null = null

  get empty(): boolean {
    return this.head === null
  }

  push(ticket: T): void {
    this.insert(ticket, this.tail, null)
  }

  /** Comes back before those that were sent later or not at all. Few ever do, and they belong to the front. */
  pushBack(ticket: T): void {
    let before = this.head
    while (before && before.n !== 0 && before.n < ticket.n) before = before.next
    this.insert(ticket, before ? before.previous : this.tail, before)
  }

  shift(): T | null {
    const first = this.head
    if (first) this.remove(first)
    return first
  }

  /** False if it does not stand here. */
  remove(ticket: T): boolean {
    if (ticket.line !== this) return false
    if (ticket.previous) ticket.previous.next = ticket.next
    else this.head = ticket.next
    if (ticket.next) ticket.next.previous = ticket.previous
    else this.tail = ticket.previous
    ticket.previous = ticket.next = ticket.line = null
    return true
  }

  *[Symbol.iterator](): IterableIterator<T> {
    for (let ticket = this.head; ticket; ticket = ticket.next) yield ticket
  }

  private insert(ticket: T, previous: T | null, next: T | null): void {
    ticket.line = this
    ticket.previous = previous
    ticket.next = next
    if (previous) previous.next = ticket
    else this.head = ticket
    if (next) next.previous = ticket
    else this.tail = ticket
  }
}
