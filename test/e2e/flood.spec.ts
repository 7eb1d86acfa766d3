/** Scenario 35 in one process and on a real Redis, durability on and off: see support/flood.ts. */
import { randomUUID } from 'node:crypto'
import { describe, expect, it } from '@jest/globals'
import { MemoryStore } from '@botmesh/core'
import { RedisStore } from '@botmesh/redis-store'
import { sharedRedisUrl } from '../support/index.js'
import { flood, LIMIT, type FloodSeen } from './support/flood.js'

const SECONDS = 4
/** What was accepted is worked off at the machine's pace, however busy it is. */
const LIMIT_MS = 60_000
/**
 * What may come on top between the first second and the last. Of what is accepted, all kept, it would be 6 MB at least; of
 * the flood itself, 30 MB.
 */
const GROWTH_BYTES = 5_000_000

function check({ sent, accepted, handled, told, othersMs, others, heapBytes }: FloodSeen): void {
  const refused = sent - accepted.length
  expect(sent).toBeGreaterThanOrEqual(SECONDS * 1000)
  expect(refused).toBeGreaterThan(sent / 4)
  expect(accepted.length).toBeGreaterThanOrEqual(LIMIT)
  // Nothing that was acknowledged is lost, or done twice, or out of order.
  expect(handled).toEqual(accepted)
  expect(told.other).toEqual([])
  expect(told.refused).toBe(refused)
  expect(told.reports).toBeLessThanOrEqual(SECONDS + 4)
  expect(others).toBeGreaterThan(SECONDS * 10)
  expect(othersMs).toBeLessThan(1500)
  const growth = Math.max(...heapBytes) - (heapBytes[0] ?? 0)
  expect(growth).toBeLessThan(GROWTH_BYTES)
}

describe.each([false, true])('scenario 35, T1, D1: a chat that floods, durability %s', (durability) => {
  it('in one process: memory stays bounded, other chats are served, nothing accepted is lost', async () => {
    const store = new MemoryStore()
    const seen = await flood(
      { store, coordination: { coordinator: store.coordinator() }, durability },
      SECONDS,
    )
    check(seen)
  })

  it(
    'on Redis: memory stays bounded, other chats are served, nothing accepted is lost',
    async () => {
      const store = new RedisStore({ url: await sharedRedisUrl(), prefix: `flood-${randomUUID()}` })
      const coordinator = store.coordinator({ leaseMs: '5s' })
      const seen = await flood({ store, coordination: { coordinator }, durability }, SECONDS)
      await store.close()
      check(seen)
    },
    LIMIT_MS,
  )
})
