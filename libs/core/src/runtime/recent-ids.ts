/**
 * Remembers which messages this process has accepted lately, so that the platform's repetitions are dropped (B1).
 * Two generations: when the younger one is full the older one is forgotten as a whole, so that at least `limit` and
 * at most twice as many are known, and forgetting costs nothing. (One map in order of insertion would do, but V8
 * walks over the graves of deleted entries to find its first one.)
 *
 * An acceptance that failed is forgotten, so that the repetition counts.
 */
export class RecentIds {
  private young = new Map<string, Promise<void> | true>()
  private old = new Map<string, Promise<void> | true>()

  constructor(private readonly limit: number) {}

  /** True: accepted before. A promise: being accepted now, by an earlier copy. Undefined: new. */
  get(id: string): Promise<void> | true | undefined {
    return this.young.get(id) ?? this.old.get(id)
  }

  /** Notes an acceptance, under way or done. */
  add(id: string, acceptance: Promise<void> | true): void {
    if (this.young.size >= this.limit) {
      this.old = this.young
      this.young = new Map()
    }
    this.young.set(id, acceptance)
  }

  /** The acceptance that was under way is done. */
  settle(id: string): void {
    for (const ids of [this.young, this.old]) if (ids.has(id)) ids.set(id, true)
  }

  forget(id: string): void {
    this.young.delete(id)
    this.old.delete(id)
  }
}
