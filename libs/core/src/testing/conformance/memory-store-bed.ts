/** The memory store on a clock that the test moves, as a bed for the store suites. */
import { MemoryStore } from '../../memory/index.js'
import { ManualClock } from '../manual-clock.js'
import type { StoreBed } from './store-bed.js'

export function memoryStoreBed(): StoreBed {
  const clock = new ManualClock()
  // One process' memory: every client of it is the same object.
  const store = new MemoryStore({ clock })
  return {
    store: () => store,
    coordinator: (options = {}) => store.coordinator(options),
    pass: (ms) => clock.advance(ms),
    until: async (promise) => {
      let settled = false
      void promise.catch(() => undefined).then(() => (settled = true))
      await clock.advanceUntil(() => settled, 60_000)
      return promise
    },
    close: async () => undefined,
  }
}
