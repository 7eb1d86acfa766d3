/** Runs what is about one key one after the other, and what is about others side by side. */
export type KeyedQueue = <T>(key: string, run: () => Promise<T>) => Promise<T>

/** @returns a queue. It runs after what came before for this key, whatever became of that; rejects as `run` does. */
export function keyedQueue(): KeyedQueue {
  const last = new Map<string, Promise<unknown>>()
  return (key, run) => {
    const before = last.get(key)
    const mine = before === undefined ? run() : before.then(run)
    const settled = mine
      .catch(() => {})
      .finally(() => {
        if (last.get(key) === settled) last.delete(key)
      })
    last.set(key, settled)
    return mine
  }
}
