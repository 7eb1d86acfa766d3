/** Conformance of appointments: what makes a timeout fire though every replica that knew of it died (ADR 8, D1, H10). */
import type { Effects } from '../../contracts/state-store.js'
import { checkpoint, message, onStore, type CompleteStore, type StoreFixture } from './store-bed.js'
import type { TestApi } from './test-api.js'

/** A real server takes its time: what is to be not over yet lies far ahead. */
const FAR = 60_000

export function timersSuite(api: TestApi, fixture: StoreFixture): void {
  api.describe('appointments', () => {
    lifeTests(api, fixture)
    replacementTests(api, fixture)
    if (fixture.guarantees.coordinator) turnTests(api, fixture)
  })
}

let commits = 0

async function commit(store: CompleteStore, key: string, effects: Effects): Promise<string | null> {
  const result = await store.commitState(key, 10, `t1#${++commits}`, effects)
  if (result.outcome !== 'committed') throw new Error(`The commit was ${result.outcome}.`)
  return result.revision
}

/** Leaves a first checkpoint that waits. @returns its revision. */
async function appoint(store: CompleteStore, key: string, wakeInMs: number): Promise<string> {
  const revision = `10:${++commits}`
  await commit(store, key, { checkpoint: checkpoint(revision), expectedRevision: null, wakeInMs })
  return revision
}

async function dueInMs(store: CompleteStore, key: string): Promise<number | undefined> {
  return (await store.openState(key, 10, { journal: true }))?.dueInMs
}

const stranded = async (store: CompleteStore, idleMs = 0): Promise<string[]> =>
  (await store.journal?.stranded(idleMs, 10))?.sort() ?? []

function lifeTests({ it, expect }: TestApi, fixture: StoreFixture): void {
  it(
    'H10: an appointment is kept by the store’s clock, and its chat is named once it is over for as long as asked',
    onStore(fixture, async (store, bed) => {
      await appoint(store, 'soon', 200)
      await appoint(store, 'far', FAR)
      await commit(store, 'none', { checkpoint: checkpoint('10:n'), expectedRevision: null })
      const left = await dueInMs(store, 'far')
      expect(left).toBeGreaterThan(FAR / 2)
      expect(left ?? FAR).toBeLessThanOrEqual(FAR)
      expect(await dueInMs(store, 'none')).toBeUndefined()
      expect(await dueInMs(store, 'unheard of')).toBeUndefined()
      await bed.pass(300)
      expect(await dueInMs(bed.store() as CompleteStore, 'soon')).toBeLessThanOrEqual(0)
      expect(await stranded(store, FAR)).toEqual([])
      expect(await stranded(store, 10)).toEqual(['soon'])
      // Looking changes nothing.
      expect(await stranded(store, 10)).toEqual(['soon'])
      expect(await store.journal?.stranded(10, 0)).toEqual([])
      expect((await store.openState('soon', 20, { journal: true }))?.record ?? null).toBeNull()
    }),
  )

  it(
    'an appointment does not outlive an ephemeral checkpoint',
    onStore(fixture, async (store, bed) => {
      const fading = checkpoint('10:1', { ephemeral: true, ttlMs: 150 })
      await commit(store, 'k', { checkpoint: fading, expectedRevision: null, wakeInMs: 50 })
      await bed.pass(300)
      expect(await stranded(store)).toEqual([])
      expect(await dueInMs(store, 'k')).toBeUndefined()
    }),
  )

  it(
    'D1: records and appointments of a chat do not disturb each other, and it is named once',
    onStore(fixture, async (store, bed) => {
      const revision = await appoint(store, 'k', 50)
      await store.journal?.record('k', message('m1'))
      await bed.pass(150)
      expect(await stranded(store)).toEqual(['k'])
      expect(await commit(store, 'k', { inboundId: 'm1', ack: ['m1'] })).toBe(revision)
      expect(await stranded(store)).toEqual(['k'])
      await store.journal?.record('k', message('m2'))
      await commit(store, 'k', { checkpoint: null, expectedRevision: revision })
      expect(await stranded(store)).toEqual(['k'])
      await commit(store, 'k', { inboundId: 'm2', ack: ['m2'] })
      expect(await stranded(store)).toEqual([])
    }),
  )
}

function replacementTests({ it, expect }: TestApi, fixture: StoreFixture): void {
  it(
    'T5: whatever writes or removes the checkpoint ends its appointment, unless it makes a new one',
    onStore(fixture, async (store, bed) => {
      const keys = ['written', 'cleared', 'again', 'refused']
      for (const key of keys) {
        const expectedRevision = await appoint(store, key, 50)
        if (key === 'written') {
          await commit(store, key, { checkpoint: checkpoint('10:w'), expectedRevision })
        } else if (key === 'cleared') await commit(store, key, { checkpoint: null, expectedRevision })
        else if (key === 'again') {
          await commit(store, key, { checkpoint: checkpoint('10:a'), expectedRevision, wakeInMs: FAR })
        } else {
          const late = { checkpoint: checkpoint('10:x'), expectedRevision: 'another', wakeInMs: FAR }
          const answer = await store.commitState(key, 10, `t1#${++commits}`, late)
          expect(answer).toMatchObject({ outcome: 'refused' })
        }
      }
      await bed.pass(150)
      expect(await stranded(store)).toEqual(['refused'])
      expect(await dueInMs(store, 'written')).toBeUndefined()
      expect(await dueInMs(store, 'cleared')).toBeUndefined()
      expect(await dueInMs(store, 'again')).toBeGreaterThan(0)
      expect(await dueInMs(store, 'refused')).toBeLessThanOrEqual(0)
    }),
  )

  it(
    'the plain methods end it too',
    onStore(fixture, async (store, bed) => {
      const { conditional } = fixture.guarantees
      for (const key of ['set', 'clear', 'set if', 'clear if']) {
        const revision = await appoint(store, key, 50)
        if (key === 'set' || !conditional) await store.setCheckpoint(key, checkpoint('10:s'))
        else if (key === 'clear') await store.clearCheckpoint(key)
        else if (key === 'set if') await store.setCheckpointIf?.(key, checkpoint('10:s'), revision, 10)
        else await store.clearCheckpointIf?.(key, revision, 10)
      }
      await bed.pass(150)
      expect(await stranded(store)).toEqual([])
    }),
  )

  it(
    'null without a checkpoint removes it and leaves the checkpoint and its revision alone',
    onStore(fixture, async (store, bed) => {
      const revision = await appoint(store, 'k', 50)
      await bed.pass(100)
      expect(await commit(store, 'k', { wakeInMs: null })).toBe(revision)
      expect(await stranded(store)).toEqual([])
      expect(await dueInMs(store, 'k')).toBeUndefined()
      expect((await store.getCheckpoint('k'))?.revision).toBe(revision)
      expect(await commit(store, 'k', { wakeInMs: null })).toBe(revision)
      expect(await commit(store, 'nobody', { wakeInMs: null })).toBeNull()
    }),
  )
}

function turnTests({ it, expect }: TestApi, fixture: StoreFixture): void {
  it(
    'a turn makes, reads and removes it in its own trips; a chat that a live replica holds is not named',
    onStore(fixture, async (store, bed) => {
      const coordinator = bed.coordinator?.({ leaseMs: 1000 })
      if (!coordinator) throw new Error('The guarantees promise a coordinator.')
      const take = async () => {
        const turn = await bed.until(coordinator.turns.take('k', { read: { journal: true } }))
        if (turn === 'duplicate') throw new Error('duplicate')
        return turn
      }
      const first = await take()
      expect(first.state?.dueInMs).toBeUndefined()
      const written = checkpoint(`${first.fence}:1`)
      await bed.until(first.commit({ checkpoint: written, expectedRevision: null, wakeInMs: 100 }))
      await bed.pass(200)
      expect(await stranded(store, 10)).toEqual(['k'])
      const second = await take()
      expect(second.state).toMatchObject({ checkpoint: written, record: null })
      expect(second.state?.dueInMs).toBeLessThanOrEqual(0)
      expect(await stranded(store, 10)).toEqual([])
      const gone = await bed.until(second.commit({ wakeInMs: null }))
      expect(gone).toMatchObject({ outcome: 'committed', revision: written.revision })
      await bed.pass(20)
      expect(await stranded(store)).toEqual([])
      const third = await take()
      expect(third.state?.dueInMs).toBeUndefined()
      const again = checkpoint(`${third.fence}:1`)
      const { revision } = written
      await bed.until(third.commit({ checkpoint: again, expectedRevision: revision, wakeInMs: 20 }))
      // A commit that knows nothing of appointments ends it too.
      const fourth = await take()
      const last = checkpoint(`${fourth.fence}:1`)
      await bed.until(fourth.commit({ inboundId: 'm1', checkpoint: last, expectedRevision: again.revision }))
      await bed.pass(100)
      expect(await stranded(store)).toEqual([])
      await bed.until(coordinator.stop())
    }),
  )
}
