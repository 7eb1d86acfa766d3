/**
 * Replicas on real servers start a few at a time, however many cells are played at once: a start makes connections and
 * tables, and hundreds of them at one moment keep the machine from everything else, so that what a cell measures in
 * leases comes late. Afterwards a cell does next to nothing.
 */
const AT_ONCE = 3

const lines: Promise<unknown>[] = Array.from({ length: AT_ONCE }, () => Promise.resolve())
let begun = 0

/** Resolves when it has started; rejects as the start does. */
export function startInLine(replica: { start(): Promise<void> }): Promise<void> {
  const at = begun++ % AT_ONCE
  const started = (lines[at] ?? Promise.resolve()).then(() => replica.start())
  lines[at] = started.catch(() => undefined)
  return started
}
