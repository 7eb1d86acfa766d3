/**
 * The tickets that wait for one key, first come first served. Every operation is O(1) amortised, also with a
 * hundred thousand tickets in line and withdrawals from the middle (scenario 7).
 */
export interface QueuedTicket {
  session: string
  ticket: string
  /** Id of the inbound message: dropped at its grant if an effect of it is committed by then (Z3). */
  dedupeId?: string
}

const COMPACT_FROM = 1024

export class TicketQueue {
  /** Withdrawn tickets leave a hole; `head` is the first place not yet served. */
  private places: (QueuedTicket | null)[] = []
  private head = 0
  /** Made by the first ticket that waits: most chats never see one. */
  private placeOf: Map<string, number> | null = null

  get size(): number {
    return this.placeOf?.size ?? 0
  }

  has(ticket: string): boolean {
    return this.placeOf?.has(ticket) ?? false
  }

  push(entry: QueuedTicket): void {
    this.placeOf ??= new Map()
    this.placeOf.set(entry.ticket, this.places.length)
    this.places.push(entry)
  }

  shift(): QueuedTicket | undefined {
    if (!this.placeOf) return undefined
    while (this.head < this.places.length) {
      const entry = this.places[this.head]
      this.places[this.head] = null
      this.head += 1
      if (entry) {
        this.placeOf.delete(entry.ticket)
        this.compact()
        return entry
      }
    }
    this.compact()
    return undefined
  }

  remove(ticket: string): boolean {
    const place = this.placeOf?.get(ticket)
    if (!this.placeOf || place === undefined) return false
    this.places[place] = null
    this.placeOf.delete(ticket)
    this.compact()
    return true
  }

  *[Symbol.iterator](): IterableIterator<QueuedTicket> {
    for (const entry of this.places) if (entry) yield entry
  }

  private compact(): void {
    if (!this.placeOf || this.placeOf.size === 0) {
      this.places = []
      this.placeOf = null
      this.head = 0
      return
    }
    if (this.places.length < COMPACT_FROM || this.placeOf.size * 2 > this.places.length) return
    this.places = this.places.filter((entry) => entry !== null)
    this.head = 0
    for (const [place, entry] of this.places.entries()) if (entry) this.placeOf.set(entry.ticket, place)
  }
}
