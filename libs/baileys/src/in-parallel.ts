/** Many small reads or writes side by side: enough at once to hide latency, few enough for any limit. */
const LANES = 16

/** Rejects with the first failure, once every lane has ended. */
export async function inParallel<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  let index = 0
  const lane = async () => {
    while (index < items.length) await run(items[index++] as T)
  }
  const ends = await Promise.allSettled(Array.from({ length: Math.min(LANES, items.length) }, lane))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}
