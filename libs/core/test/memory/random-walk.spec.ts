/** Random walks (walk.ts) hold the invariants; with a rule switched off they do not. */
import { describe, expect, it } from '@jest/globals'
import type { CoordinationBackend } from '@botmesh/core'
import { FaultyBackend, memoryBed, seedOfRun } from '@botmesh/core/testing'
import { Walk } from './walk.js'

describe('random walks', () => {
  const first = seedOfRun()
  // More of them by hand: WALKS=2000.
  const walks = Number(process.env['WALKS'] ?? 40)
  for (let seed = first; seed < first + walks; seed += 1) {
    it(`I1, I6, I10: nobody overlaps and everybody is served (SEED=${seed})`, async () => {
      const walk = new Walk(seed)
      await walk.run(60)
      expect(walk.violations).toEqual([])
      expect(walk.turns).toBeGreaterThan(0)
    })
  }
})

describe('broken on purpose', () => {
  // The rules that these walks cannot miss; for the others see turn-machine.spec.ts and differential.spec.ts.
  for (const broken of ['fence-check', 'dead-holder', 'dedupe'] as const) {
    it(`the walks notice when "${broken}" is switched off`, async () => {
      let noticed = false
      for (let seed = 1; seed <= 20 && !noticed; seed += 1) {
        const walk = new Walk(seed, [broken])
        // Somebody who waits for ever is noticed too.
        const stuck = await walk.run(60, 60_000).then(
          () => false,
          () => true,
        )
        noticed = stuck || walk.violations.length > 0
      }
      expect(noticed).toBe(true)
    })
  }

  it('I10: without reconciliation a lost push is not repaired by the next heartbeat', async () => {
    const wait = async (blind: boolean): Promise<number> => {
      const bed = memoryBed()
      const faulty = (backend: CoordinationBackend) =>
        new FaultyBackend(backend, { push: () => false, blind })
      const [a, b] = [bed.coordinator(), bed.coordinator({ wrap: faulty })]
      const held = await bed.until(a.turns.take('chat'))
      if (held === 'duplicate') throw new Error('duplicate')
      const waiting = b.turns.take('chat')
      await bed.pass(10)
      const since = bed.elapsed()
      await held.release()
      await bed.until(waiting)
      const waited = bed.elapsed() - since
      await bed.close()
      return waited
    }
    expect(await wait(false)).toBeLessThanOrEqual(1000 / 3)
    expect(await wait(true)).toBeGreaterThan(1000 / 3)
  })
})
