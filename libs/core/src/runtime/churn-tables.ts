/**
 * Collections for what comes and goes thousands of times a second.
 *
 * `Map` and `Set` are not made for that in V8: each time they have seen enough insertions they move to a new table, the
 * old one keeps pointing to the new one, and once an old one has survived into the old generation, every later table
 * with all that was in it survives each young collection as well. Measured on turns: a fifth of all garbage was copied
 * in every collection, a third of the process's time.
 */

/** By text, without order. */
export class KeyTable<T> {
  private entries: Record<string, T> = Object.create(null) as Record<string, T>

  get(key: string): T | undefined {
    return this.entries[key]
  }

  set(key: string, value: T): void {
    this.entries[key] = value
  }

  delete(key: string): void {
    delete this.entries[key]
  }

  values(): T[] {
    return Object.values(this.entries)
  }

  clear(): void {
    this.entries = Object.create(null) as Record<string, T>
  }
}

/** What a `Bag` holds: it knows its place. */
export interface Placed {
  /** -1: in no bag. */
  place: number
}

/** A set of objects, each in at most one bag, in no order. */
export class Bag<T extends Placed> {
  private readonly items: T[] = []

  get size(): number {
    return this.items.length
  }

  add(item: T): void {
    if (item.place >= 0) return
    item.place = this.items.length
    this.items.push(item)
  }

  delete(item: T): void {
    const { place } = item
    if (place < 0) return
    item.place = -1
    const last = this.items.pop()
    if (last === undefined || last === item) return
    this.items[place] = last
    last.place = place
  }

  toArray(): T[] {
    return [...this.items]
  }
}

/** By a number that grows: mostly one look at an array; what is there for very long moves over to a map. */
export class CounterTable<T extends { readonly n: number }> {
  private readonly slots: (T | undefined)[] = Array.from({ length: SLOTS }, () => undefined)
  private readonly old = new Map<number, T>()

  get(n: number): T | undefined {
    const found = this.slots[n % SLOTS]
    return found?.n === n ? found : this.old.get(n)
  }

  set(item: T): void {
    const slot = item.n % SLOTS
    const there = this.slots[slot]
    if (there) this.old.set(there.n, there)
    this.slots[slot] = item
  }

  delete(item: T): void {
    const slot = item.n % SLOTS
    if (this.slots[slot] === item) this.slots[slot] = undefined
    else if (this.old.get(item.n) === item) this.old.delete(item.n)
  }

  /** Oldest first. */
  values(): T[] {
    const all = [...this.old.values()]
    for (const item of this.slots) if (item) all.push(item)
    return all.sort((a, b) => a.n - b.n)
  }

  clear(): void {
    this.slots.fill(undefined)
    this.old.clear()
  }
}

const SLOTS = 4096
