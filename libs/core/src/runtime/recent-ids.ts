/**
 * Remembers which messages this process has accepted lately, so that the platform's repetitions are dropped (B1).
 * Bounded: the oldest are forgotten first. An acceptance that failed is forgotten, so that the repetition counts.
 */
export class RecentIds {
  private readonly known = new Map<string, Promise<void> | true>()

  constructor(private readonly limit: number) {}

  /** True: accepted before. A promise: being accepted now, by an earlier copy. Undefined: new. */
  get(id: string): Promise<void> | true | undefined {
    return this.known.get(id)
  }

  /** Notes an acceptance, under way or done. */
  add(id: string, acceptance: Promise<void> | true): void {
    this.known.set(id, acceptance)
    if (this.known.size > this.limit) {
      const { value } = this.known.keys().next()
      if (value !== undefined) this.known.delete(value)
    }
  }

  /** The acceptance that was under way is done. */
  settle(id: string): void {
    if (this.known.has(id)) this.known.set(id, true)
  }

  forget(id: string): void {
    this.known.delete(id)
  }
}
