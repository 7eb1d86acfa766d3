/** The differential test, tried on two hubs: equal ones agree, and one with a rule switched off is found out. */
import { describe, expect, it } from '@jest/globals'
import {
  ManualClock,
  MemoryBackend,
  MemoryCoordinationHub,
  differential,
  seedOfRun,
} from '@botmesh/core/testing'
import type { BreakableRule } from '../../src/kernel/turn-state.js'

function run(seed: number, broken: BreakableRule[] = []) {
  const clock = new ManualClock()
  return differential({
    seed,
    steps: 150,
    pushMs: 20,
    reference: new MemoryBackend(new MemoryCoordinationHub({ clock })),
    subject: new MemoryBackend(new MemoryCoordinationHub({ clock, broken })),
    pass: (ms) => clock.advance(ms),
  })
}

describe('differential test', () => {
  const first = seedOfRun()
  for (let seed = first; seed < first + 10; seed += 1) {
    it(`two hubs agree on every outcome (SEED=${seed})`, async () => {
      expect(await run(seed)).toEqual([])
    })
  }

  for (const broken of ['fence-check', 'dead-tickets', 'dead-holder', 'dedupe'] as const) {
    it(`I1–I9: a backend without the rule "${broken}" is found out`, async () => {
      let found = 0
      for (let seed = 1; seed <= 6 && found === 0; seed += 1) found += (await run(seed, [broken])).length
      expect(found).toBeGreaterThan(0)
    })
  }
})
