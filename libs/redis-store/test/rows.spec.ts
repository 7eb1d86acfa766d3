/**
 * What a trace says of a chat's row is an optimisation that must never be wrong: whoever else writes to the row, the
 * next turn sees it, and what is to stay does not expire (I5, K1, Z4).
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { FlowCheckpoint, Turn } from '@botmesh/core'
import { RedisStore, type RedisCoordinator } from '../src/index.js'
import { startRedis, type PrivateRedis } from './private-redis.js'

let server: PrivateRedis
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const checkpoint = (revision: string, more: Partial<FlowCheckpoint> = {}): FlowCheckpoint => ({
  v: 1,
  name: 'order',
  kind: 'flow',
  step: 'size',
  visit: 1,
  state: { n: revision },
  fingerprint: 'f',
  revision,
  ...more,
})

interface Scene {
  store: RedisStore
  coordinator: RedisCoordinator
  base: string
  take: () => Promise<Turn>
}

async function scene(play: (scene: Scene) => Promise<void>): Promise<void> {
  const prefix = `rows:${randomUUID()}`
  const store = new RedisStore({ url: server.url, prefix, dedupeMs: 4000 })
  const coordinator = store.coordinator({ leaseMs: 1000 })
  const take = async (): Promise<Turn> => {
    const turn = await coordinator.turns.take('k', { read: {} })
    if (turn === 'duplicate') throw new Error('duplicate')
    return turn
  }
  try {
    await play({ store, coordinator, base: `${encodeURIComponent(prefix)}:{0}:`, take })
  } finally {
    await coordinator.stop()
    await store.close()
  }
}

/** A turn that stores a checkpoint on what it read. */
async function step({ take }: Scene, more: Partial<FlowCheckpoint> = {}): Promise<FlowCheckpoint> {
  const turn = await take()
  const written = checkpoint(`${turn.fence}:1`, more)
  const done = await turn.commit({ checkpoint: written, expectedRevision: turn.revision ?? null })
  expect(done).toMatchObject({ outcome: 'committed', revision: written.revision })
  return written
}

describe('rows and traces', () => {
  it('Z4: turn after turn reads what the one before stored', () =>
    scene(async (here) => {
      for (let n = 0; n < 4; n += 1) {
        const written = await step(here)
        const next = await here.take()
        expect(next.revision).toBe(written.revision)
        expect(next.state).toMatchObject({ checkpoint: written, revision: written.revision })
        await next.release()
      }
    }))

  it.each([
    ['setCheckpoint', (store: RedisStore) => store.setCheckpoint('k', checkpoint('x:1'))],
    [
      'setCheckpointIf',
      async (store: RedisStore) => {
        const revision = (await store.getCheckpoint('k'))?.revision ?? null
        expect(await store.setCheckpointIf('k', checkpoint('x:1'), revision, Number.MAX_SAFE_INTEGER)).toBe(
          true,
        )
      },
    ],
  ])('K2: %s between two turns is what the next one reads and goes on from', (_, write) =>
    scene(async (here) => {
      await step(here)
      await write(here.store)
      const turn = await here.take()
      expect(turn.revision).toBe('x:1')
      expect(turn.state?.checkpoint?.revision).toBe('x:1')
      await turn.release()
    }),
  )

  it('K2: what the store writes during a turn refuses the commit of that turn', () =>
    scene(async (here) => {
      await step(here)
      const turn = await here.take()
      await here.store.setCheckpoint('k', checkpoint('x:1'))
      const late = { checkpoint: checkpoint(`${turn.fence}:1`), expectedRevision: turn.revision ?? null }
      expect(await turn.commit(late)).toMatchObject({ outcome: 'refused' })
      expect((await here.store.getCheckpoint('k'))?.revision).toBe('x:1')
    }))

  it('I11: a removal is seen, and its tombstone refuses what was in flight', () =>
    scene(async (here) => {
      const first = await step(here)
      await here.store.clearCheckpoint('k')
      const turn = await here.take()
      expect(turn.state?.checkpoint).toBeNull()
      expect(turn.revision).not.toBe(first.revision)
      const late = { checkpoint: checkpoint(`${turn.fence}:1`), expectedRevision: first.revision }
      expect(await turn.commit(late)).toMatchObject({ outcome: 'refused' })
    }))

  it('H6: a marker beside the checkpoint, or without one, is never overlooked', () =>
    scene(async (here) => {
      const marker = { v: 1 as const, name: 'survey', kind: 'async' as const, reason: 'async' as const }
      const turn = await here.take()
      await turn.commit({ marker })
      expect((await here.take().then(releasing)).state?.marker).toEqual(marker)
      await step(here)
      const both = await here.take().then(releasing)
      expect(both.state).toMatchObject({ marker })
      expect(both.state?.checkpoint).not.toBeNull()
      // Also when the trace of the chat is gone.
      await server.admin.del(...(await server.admin.keys(`${here.base}t:*`)))
      expect((await here.take().then(releasing)).state).toMatchObject({ marker })
      expect((await here.take().then(releasing)).state).toMatchObject({ marker })
    }))

  it('K1: a checkpoint that does not expire has no expiry, whatever the row had before', () =>
    scene(async (here) => {
      await here.store.openState('k', 1)
      expect(await server.admin.pttl(`${here.base}c:k`)).toBeGreaterThan(0)
      await step(here)
      expect(await server.admin.pttl(`${here.base}c:k`)).toBe(-1)
      await step(here, { ephemeral: true, ttlMs: 60_000 })
      expect(await server.admin.pttl(`${here.base}c:k`)).toBeGreaterThan(50_000)
      await step(here)
      expect(await server.admin.pttl(`${here.base}c:k`)).toBe(-1)
      await here.store.journal.record('k', message())
      const turn = await here.take()
      await here.store.journal.fail('k', 'm1', turn.fence, 'boom', 10)
      await turn.release()
      await step(here)
      expect(await server.admin.pttl(`${here.base}c:k`)).toBe(-1)
    }))

  it('H10: an appointment is never overlooked either', () =>
    scene(async (here) => {
      const first = await step(here)
      const turn = await here.take()
      const written = checkpoint(`${turn.fence}:1`)
      await turn.commit({ checkpoint: written, expectedRevision: first.revision, wakeInMs: 60_000 })
      expect((await here.take().then(releasing)).state?.dueInMs).toBeGreaterThan(50_000)
      await step(here)
      expect((await here.take().then(releasing)).state?.dueInMs).toBeUndefined()
    }))

  it('H1: an ephemeral checkpoint that expired is gone for the next turn', () =>
    scene(async (here) => {
      await step(here, { ephemeral: true, ttlMs: 50 })
      await sleep(100)
      const turn = await here.take()
      expect(turn.state).toMatchObject({ checkpoint: null, revision: null })
      expect(turn.revision ?? null).toBeNull()
      const fresh = { checkpoint: checkpoint(`${turn.fence}:1`), expectedRevision: null }
      expect(await turn.commit(fresh)).toMatchObject({ outcome: 'committed' })
    }))

  /** What is known of the row is forgotten, so that it is read. */
  const forget = async (base: string): Promise<void> => {
    const windows = await server.admin.keys(`${base.replace(/[{}]/g, (brace) => `\\${brace}`)}t:*`)
    await server.admin.del(...windows)
  }

  it.each([
    ...['junk', 'Pnan', 'P1e400', ''].map((ms) => ({ x: ms, y: ms, w: ms })),
    ...['a b', 'a|b', '7:1\n8:1', '\t|\r\n', ''].map((r) => ({ r })),
  ])('a row that a broken writer touched keeps no chat from being served: %o', (planted) =>
    scene(async (here) => {
      await step(here)
      await server.admin.hset(`${here.base}c:k`, planted)
      await forget(here.base)
      const written = await step(here)
      const next = await here.take()
      expect(next.state?.checkpoint).toEqual(written)
      expect(await next.commit({ checkpoint: null, expectedRevision: next.revision ?? null })).toMatchObject({
        outcome: 'committed',
      })
      await server.admin.hset(`${here.base}c:k`, planted)
      await forget(here.base)
      await ((await here.coordinator.turns.take('k')) as Turn).release()
      await step(here)
    }),
  )

  it('scenario 29: a value that cannot be read is met until it is reported and set aside, and then no more', () =>
    scene(async (here) => {
      await step(here)
      await server.admin.hset(`${here.base}c:k`, 'c', '{broken')
      const turn = await here.take()
      expect(turn.state?.checkpoint).toBeNull()
      expect(turn.state?.damaged).toMatchObject([{ what: 'checkpoint', key: 'k' }])
      // Nobody has reported it: it is met again.
      await turn.release()
      const second = await here.take()
      expect(second.state?.damaged).toHaveLength(1)
      expect(await here.store.setAside('k', 'checkpoint')).toBe(`hash ${here.base}damaged`)
      expect(await here.store.setAside('k', 'checkpoint')).toBe('nothing: it can be read')
      await second.release()
      const next = await here.take()
      expect(next.state?.damaged).toBeUndefined()
      expect(await server.admin.hvals(`${here.base}damaged`)).toEqual(['{broken'])
      const fresh = { checkpoint: checkpoint(`${next.fence}:1`), expectedRevision: next.revision ?? null }
      expect(await next.commit(fresh)).toMatchObject({ outcome: 'committed' })
    }))
})

async function releasing(turn: Turn): Promise<Turn> {
  await turn.release()
  return turn
}

function message() {
  return {
    id: 'm1',
    chatId: '1',
    from: '1',
    type: 'text' as const,
    body: 'hola',
    isGroup: false,
    timestamp: 1,
  }
}
