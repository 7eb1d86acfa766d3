/**
 * Replicas on real servers start a few at a time, however many cells are played at once: a start makes connections and
 * tables, and hundreds of them at one moment keep the machine from everything else, so that what a cell measures in
 * leases comes late. Afterwards a cell does next to nothing.
 */
const AT_ONCE = 3

let starting = 0
const waiting: (() => void)[] = []

/** Resolves when it has started; rejects as the start does. */
export async function startInTurn(replica: { start(): Promise<void> }): Promise<void> {
  if (starting >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve))
  else starting += 1
  try {
    await replica.start()
  } finally {
    // The place goes to who waits longest.
    const next = waiting.shift()
    if (next === undefined) starting -= 1
    else next()
  }
}
