/** Conformance of a chat's state as one unit, with turns in another backend: fenced, atomic, idempotent (Z4, I5, I9). */
import { checkpoint, onStore, type StoreFixture } from './store-bed.js'
import type { TestApi } from './test-api.js'

export function stateSuite({ describe, it, expect }: TestApi, fixture: StoreFixture): void {
  describe('state of a chat', () => {
    it(
      'Z4: a commit stores checkpoint, marker and inbound id together, and openState reads them',
      onStore(fixture, async (store, bed) => {
        expect(await store.openState('k', 10)).toMatchObject({
          checkpoint: null,
          marker: null,
          revision: null,
        })
        const marker = { v: 1, name: 'survey', kind: 'async', reason: 'async' } as const
        const result = await store.commitState('k', 10, 't1#1', {
          inboundId: 'm1',
          checkpoint: checkpoint('10:1'),
          expectedRevision: null,
          marker,
        })
        expect(result).toMatchObject({ outcome: 'committed', revision: '10:1' })
        const state = await (bed.store() as typeof store).openState('k', 20)
        expect(state).toMatchObject({ checkpoint: checkpoint('10:1'), marker, revision: '10:1' })
        expect(await store.isCommitted('k', 'm1')).toBe(true)
        expect(await store.isCommitted('k', 'm2')).toBe(false)
        expect(await store.isCommitted('other', 'm1')).toBe(false)
      }),
    )

    it(
      'I5: the opening read refuses every lower fence from then on',
      onStore(fixture, async (store) => {
        await store.openState('k', 20)
        expect(await store.openState('k', 10)).toBeNull()
        const late = await store.commitState('k', 10, 't1#1', {
          inboundId: 'm1',
          checkpoint: checkpoint('10:1'),
        })
        expect(late).toMatchObject({ outcome: 'refused', why: 'superseded' })
        expect(await store.isCommitted('k', 'm1')).toBe(false)
        expect(await store.getCheckpoint('k')).toBeNull()
        expect((await store.openState('k', 20)) === null).toBe(false)
      }),
    )

    it(
      'I9: a resent commit answers what the first one answered and changes nothing',
      onStore(fixture, async (store) => {
        const first = { inboundId: 'm1', checkpoint: checkpoint('10:1'), expectedRevision: null }
        const answer = await store.commitState('k', 10, 't1#1', first)
        await store.commitState('k', 10, 't1#2', { checkpoint: checkpoint('10:2'), expectedRevision: '10:1' })
        expect(await store.commitState('k', 10, 't1#1', first)).toEqual(answer)
        expect((await store.getCheckpoint('k'))?.revision).toBe('10:2')
      }),
    )

    it(
      'Z4: a commit on an unexpected revision is refused whole',
      onStore(fixture, async (store) => {
        await store.commitState('k', 10, 't1#1', { checkpoint: checkpoint('10:1'), expectedRevision: null })
        const result = await store.commitState('k', 20, 't2#1', {
          inboundId: 'm2',
          checkpoint: checkpoint('20:1'),
          expectedRevision: null,
          marker: { v: 1, name: 'x', kind: 'async', reason: 'async' },
        })
        expect(result).toMatchObject({ outcome: 'refused' })
        expect(await store.isCommitted('k', 'm2')).toBe(false)
        expect(await store.openState('k', 20)).toMatchObject({ revision: '10:1', marker: null })
      }),
    )

    it(
      'I11: a removal leaves a tombstone whose revision chains on',
      onStore(fixture, async (store) => {
        await store.commitState('k', 10, 't1#1', { checkpoint: checkpoint('10:1'), expectedRevision: null })
        const cleared = await store.commitState('k', 10, 't1#2', {
          checkpoint: null,
          expectedRevision: '10:1',
        })
        if (cleared.outcome !== 'committed') throw new Error('refused')
        const state = await store.openState('k', 20)
        expect(state).toMatchObject({ checkpoint: null, revision: cleared.revision })
        expect(
          await store.commitState('k', 20, 't2#1', {
            checkpoint: checkpoint('20:1'),
            expectedRevision: '10:1',
          }),
        ).toMatchObject({ outcome: 'refused' })
        expect(
          await store.commitState('k', 20, 't2#2', {
            checkpoint: checkpoint('20:2'),
            expectedRevision: cleared.revision,
          }),
        ).toMatchObject({ outcome: 'committed', revision: '20:2' })
      }),
    )

    it(
      'an absent part of the effects leaves what is stored; null removes it',
      onStore(fixture, async (store) => {
        const marker = { v: 1, name: 'x', kind: 'async', reason: 'async' } as const
        await store.commitState('k', 10, 't1#1', {
          checkpoint: checkpoint('10:1'),
          expectedRevision: null,
          marker,
        })
        expect(await store.commitState('k', 10, 't1#2', { inboundId: 'm1' })).toMatchObject({
          revision: '10:1',
        })
        expect(await store.openState('k', 10)).toMatchObject({ marker, revision: '10:1' })
        await store.commitState('k', 10, 't1#3', { marker: null })
        expect(await store.openState('k', 10)).toMatchObject({ marker: null, revision: '10:1' })
      }),
    )

    it(
      'arrive notes a message once it is not committed yet, and says so when it is',
      onStore(fixture, async (store) => {
        const arrival = { messageId: 'm1', timestamp: 1_700_000_000_000 }
        expect(await store.arrive('k', arrival)).toBe('recorded')
        await store.commitState('k', 10, 't1#1', { inboundId: 'm1' })
        expect(await store.arrive('k', arrival)).toBe('duplicate')
      }),
    )
  })
}
