/** The same random operations through the turn machine and through the scripts, in lockstep: one outcome (I1–I9). */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import {
  ManualClock,
  MemoryBackend,
  MemoryCoordinationHub,
  differential,
  seedOfRun,
} from '@botmesh/core/testing'
import { ShardedPlace } from '../src/layout.js'
import { RedisBackend } from '../src/redis-backend.js'
import { urlTarget } from '../src/redis-target.js'
import type { ScriptPatch } from '../src/scripts.js'
import { startRedis, type PrivateRedis } from './private-redis.js'

let server: PrivateRedis
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

function run(seed: number, patch?: ScriptPatch): Promise<string[]> {
  const clock = new ManualClock()
  return differential({
    seed,
    steps: 150,
    // Slack for a loaded machine: the reference lives by a clock of its own.
    leaseMs: 2000,
    reference: new MemoryBackend(new MemoryCoordinationHub({ clock })),
    subject: new RedisBackend({
      place: new ShardedPlace({
        target: urlTarget(server.url),
        prefix: `differential:${randomUUID()}`,
        windowMs: 3_600_000,
        layout: 'single',
        shards: 1,
      }),
      shard: 0,
      waitingPerChat: 100_000,
      idsPerChat: 1000,
      shares: () => false,
      patch,
    }),
    pass: async (ms) => {
      await clock.advance(ms)
      await sleep(ms)
    },
  })
}

describe('differential test: the in-process hub and Redis', () => {
  const first = seedOfRun()
  for (let seed = first; seed < first + 2; seed += 1) {
    it(`I1–I9: agree on every outcome (SEED=${seed})`, async () => {
      expect(await run(seed)).toEqual([])
    }, 60_000)
  }

  it('I3: a script that grants the last in line is found out', async () => {
    const breaking: ScriptPatch = (source) => {
      const changed = source.replace("local entry = call('LPOP', queue)", "local entry = call('RPOP', queue)")
      if (changed === source) throw new Error('The script grants by another rule.')
      return changed
    }
    let found = 0
    for (let seed = 1; seed <= 4 && found === 0; seed += 1) found += (await run(seed, breaking)).length
    expect(found).toBeGreaterThan(0)
  }, 60_000)
})
