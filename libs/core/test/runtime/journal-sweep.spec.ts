/** The look for chats that nobody works on, when its bot stops. */
import { describe, expect, it } from '@jest/globals'
import { MemoryStore } from '../../src/index.js'
import { JournalSweep } from '../../src/runtime/journal-sweep.js'
import { ManualClock } from '../../src/testing/index.js'

/** A sweep whose looks are answered by the test. */
function sweepWith(clock: ManualClock) {
  const { journal } = new MemoryStore()
  const looks: { found(keys: string[]): void; failed(): void }[] = []
  journal.stranded = () =>
    new Promise((resolve, reject) =>
      looks.push({ found: resolve, failed: () => reject(new Error('the store is closed')) }),
    )
  const woken: string[] = []
  const reported: unknown[] = []
  const sweep = new JournalSweep({
    journal,
    provider: 'test',
    clock,
    everyMs: 100,
    idleMs: 0,
    maySend: () => true,
    wake: (key) => woken.push(key),
    report: (error) => reported.push(error),
  })
  return { sweep, looks, woken, reported }
}

describe('D1, T4: the look for stranded chats', () => {
  it('wakes what it finds, and says once that the store is away', async () => {
    const clock = new ManualClock()
    const { sweep, looks, woken, reported } = sweepWith(clock)
    sweep.start()
    looks[0]?.found(['test/1', 'other/1'])
    await clock.settle()
    expect(woken).toEqual(['test/1'])
    for (const n of [1, 2]) {
      await clock.advance(100)
      looks[n]?.failed()
      await clock.settle()
    }
    expect(reported).toHaveLength(1)
    sweep.stop()
    expect(clock.timers).toBe(0)
  })

  it.each(['found', 'failed'] as const)(
    'has no effect once its bot stops, whatever comes of it: %s',
    async (end) => {
      const clock = new ManualClock()
      const { sweep, looks, woken, reported } = sweepWith(clock)
      sweep.start()
      sweep.stop()
      looks[0]?.[end](['test/1'])
      await clock.settle()
      // A transport that reports itself open as the last thing.
      await sweep.look()
      expect({ woken, reported, looks: looks.length, timers: clock.timers }).toEqual({
        woken: [],
        reported: [],
        looks: 1,
        timers: 0,
      })
    },
  )
})
