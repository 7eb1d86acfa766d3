/**
 * Simulated lives, a few hundred of them: no seed may lose, double, swap or overlap anything (T1, T8, L1–L4, K1–K4, D1,
 * D2; scenarios 3–5, 11, 13–15). `SEED=<n>` plays one alone and tells its story; `SEEDS=<n>` plays so many new ones.
 */
import { describe, expect, it } from '@jest/globals'
import { seedOfRun } from '@botmesh/core/testing'
import { simulate, type SimulationResult } from './simulate.js'

const SEEDS_OF_SUITE = 300
const IN_A_TEST = 25

const alone = process.env['SEED'] !== undefined && process.env['SEEDS'] === undefined
const fresh = Number(process.env['SEEDS'] ?? 0)
const first = alone || fresh > 0 ? seedOfRun() : 1
const count = alone ? 1 : fresh > 0 ? fresh : SEEDS_OF_SUITE

describe('T1, T8, L1–L4, D1, D2, scenarios 5, 13–15: simulated lives', () => {
  for (let from = first; from < first + count; from += IN_A_TEST) {
    const to = Math.min(from + IN_A_TEST, first + count) - 1
    it(`hold for the seeds ${from} to ${to}`, async () => {
      const broken: string[] = []
      for (let seed = from; seed <= to; seed++) {
        const result = await simulate(seed)
        if (result.faults.length > 0) broken.push(told(result))
      }
      expect(broken).toEqual([])
    })
  }
})

describe('the oracle of simulated lives', () => {
  it.each([
    ['outbox', /^doubled/],
    ['journal', /^lost/],
    ['turns', /^(overlap|order|doubled|lost|stuck)/],
  ] as const)('D1, D2, T1: misses the %s', async (without, fault) => {
    const found: string[] = []
    for (let seed = 1; seed <= 60 && !found.some((one) => fault.test(one)); seed++) {
      found.push(...(await simulate(seed, without)).faults)
    }
    expect(found).toContainEqual(expect.stringMatching(fault))
  })
})

function told({ seed, faults, story }: SimulationResult): string {
  const how = `SEED=${seed} npm run jest -- test/simulation`
  const whole = alone ? `\n${story.join('\n')}` : ''
  return `seed ${seed} (${how}): ${faults.join('; ')}${whole}`
}
