/**
 * Conformance of a store whose coordinator shares its backend: a turn reads and commits the chat's state in the trips
 * of the turn itself (Z4, I5, I8, I9).
 */
import type { Coordinator, Turn } from '../../contracts/coordinator.js'
import { LeaseLostError } from '../../contracts/errors.js'
import { FaultyBackend } from '../faulty-backend.js'
import { checkpoint, intent, message, onStore, type StoreBed, type StoreFixture } from './store-bed.js'
import { rejection, type TestApi } from './test-api.js'

function coordinatorOf(bed: StoreBed, options: Parameters<NonNullable<StoreBed['coordinator']>>[0] = {}) {
  if (!bed.coordinator) throw new Error('The guarantees promise a coordinator.')
  return bed.coordinator({ leaseMs: 1000, ...options })
}

async function take(
  bed: StoreBed,
  coordinator: Coordinator,
  key: string,
  options: Parameters<Coordinator['turns']['take']>[1] = {},
): Promise<Turn> {
  const turn = await bed.until(coordinator.turns.take(key, options))
  if (turn === 'duplicate') throw new Error('duplicate')
  return turn
}

export function sharedStateSuite({ describe, it, expect }: TestApi, fixture: StoreFixture): void {
  describe('turns that share the backend', () => {
    it(
      'the coordinator knows which stores share its backend',
      onStore(fixture, async (store, bed) => {
        const coordinator = coordinatorOf(bed)
        expect(coordinator.sharesBackendWith(store)).toBe(true)
        expect(coordinator.sharesBackendWith({})).toBe(false)
        await bed.until(coordinator.stop())
      }),
    )

    it(
      'Z4: take brings the state, commit stores it, releases, and the next grant knows its revision',
      onStore(fixture, async (store, bed) => {
        const [a, b] = [coordinatorOf(bed), coordinatorOf(bed)]
        const first = await take(bed, a, 'k', { read: {} })
        expect(first.state).toMatchObject({ checkpoint: null, marker: null, revision: null })
        expect(first.revision ?? null).toBeNull()
        let stands = (): void => undefined
        const queued = new Promise<void>((resolve) => (stands = resolve))
        const waiting = bed.until(b.turns.take('k', { read: {}, onTicket: stands }))
        await bed.until(queued)
        const written = checkpoint(`${first.fence}:1`)
        const result = await bed.until(
          first.commit({ inboundId: 'm1', checkpoint: written, expectedRevision: null }),
        )
        expect(result).toMatchObject({ outcome: 'committed', revision: written.revision })
        const second = await waiting
        if (second === 'duplicate') throw new Error('duplicate')
        expect(second.revision).toBe(written.revision)
        // Not granted at once: a read that came along with the take would be of before the commit.
        expect(second.state).toBeUndefined()
        expect(await store.getCheckpoint('k')).toEqual(written)
        expect(await store.isCommitted('k', 'm1')).toBe(true)
        await second.release()
        const third = await take(bed, b, 'k', { read: {} })
        expect(third.state).toMatchObject({ checkpoint: written, revision: written.revision })
        await Promise.all([a, b].map((one) => bed.until(one.stop())))
      }),
    )

    it(
      'Z4: a commit without release keeps the turn; a revision that is not expected refuses and loses it',
      onStore(fixture, async (store, bed) => {
        const a = coordinatorOf(bed)
        const turn = await take(bed, a, 'k')
        const first = checkpoint(`${turn.fence}:1`)
        await bed.until(turn.commit({ checkpoint: first, expectedRevision: null }, { release: false }))
        turn.assertHeld()
        const second = checkpoint(`${turn.fence}:2`)
        const refused = await bed.until(turn.commit({ checkpoint: second, expectedRevision: null }))
        expect(refused).toMatchObject({ outcome: 'refused' })
        expect(turn.signal.reason).toMatchObject({ reason: 'superseded' })
        expect((await store.getCheckpoint('k'))?.revision).toBe(first.revision)
        const next = await take(bed, a, 'k')
        expect(next.fence).toBeGreaterThan(turn.fence)
        await bed.until(a.stop())
      }),
    )

    it(
      'I5: after a grant the store refuses every earlier fence, also in its plain methods',
      onStore(fixture, async (store, bed) => {
        const [a, b] = [coordinatorOf(bed), coordinatorOf(bed)]
        const first = await take(bed, a, 'k', { read: {} })
        await first.release()
        const second = await take(bed, b, 'k', { read: {} })
        const late = checkpoint(`${first.fence}:1`)
        expect(await store.setCheckpointIf?.('k', late, null, first.fence)).toBe(false)
        expect(await store.commitState('k', first.fence, 'late#1', { inboundId: 'm1' })).toMatchObject({
          outcome: 'refused',
        })
        const current = checkpoint(`${second.fence}:1`)
        expect(await store.setCheckpointIf?.('k', current, null, second.fence)).toBe(true)
        await Promise.all([a, b].map((one) => bed.until(one.stop())))
      }),
    )

    it(
      'I9: a commit whose reply is lost is repeated and stored once',
      onStore(fixture, async (store, bed) => {
        let lose = 2
        const fault = (call: string) => (call === 'commit' && lose-- > 0 ? ('lost-reply' as const) : null)
        const a = coordinatorOf(bed, { wrap: (backend) => new FaultyBackend(backend, { fault }) })
        const turn = await take(bed, a, 'k')
        const written = checkpoint(`${turn.fence}:1`)
        const result = await bed.until(
          turn.commit({ inboundId: 'm1', checkpoint: written, expectedRevision: null }),
        )
        expect(result).toMatchObject({ outcome: 'committed', revision: written.revision })
        expect((await store.getCheckpoint('k'))?.revision).toBe(written.revision)
        const next = await take(bed, a, 'k')
        expect(next.revision).toBe(written.revision)
        await bed.until(a.stop())
      }),
    )

    it(
      'Z4, K4: a turn that was lost commits nothing',
      onStore(fixture, async (store, bed) => {
        const a = coordinatorOf(bed)
        const turn = await take(bed, a, 'k')
        await bed.until(a.stop())
        const error = await rejection(turn.commit({ checkpoint: checkpoint('1:1'), expectedRevision: null }))
        expect(error instanceof LeaseLostError).toBe(true)
        expect(await store.getCheckpoint('k')).toBeNull()
      }),
    )

    if (fixture.guarantees.journal) {
      it(
        'D1: an arrival is journalled with its ticket; a known record still gets a ticket; the grant brings it',
        onStore(fixture, async (store, bed) => {
          const a = coordinatorOf(bed)
          const arrival = { messageId: 'm1', timestamp: 1, message: message('m1') }
          const first = await take(bed, a, 'k', { arrival, dedupeId: 'm1', read: { journal: true } })
          expect(first.state?.record).toMatchObject({ id: 'm1', message: message('m1') })
          await first.release()
          const second = await take(bed, a, 'k', { arrival, dedupeId: 'm1', read: { journal: true } })
          const sent = intent('r:m1/size/1/0')
          await bed.until(second.commit({ outbox: [sent] }, { release: false }))
          expect((await store.outbox?.entries('k'))?.length).toBe(1)
          const done = await bed.until(second.commit({ inboundId: 'm1', ack: ['m1'], forget: [sent.key] }))
          expect(done).toMatchObject({ outcome: 'committed', more: false })
          expect(await bed.until(a.turns.take('k', { arrival, dedupeId: 'm1' }))).toBe('duplicate')
          expect(await store.journal?.oldest('k')).toBeNull()
          await bed.until(a.stop())
        }),
      )

      it(
        'D1: a chat somebody works on is not stranded; after that replica’s death it is',
        onStore(fixture, async (store, bed) => {
          const a = coordinatorOf(bed)
          const arrival = { messageId: 'm1', timestamp: 1, message: message('m1') }
          const turn = await take(bed, a, 'k', { arrival, dedupeId: 'm1' })
          await bed.pass(100)
          expect((await store.journal?.oldest('k'))?.id).toBe('m1')
          await turn.release()
          await bed.until(a.stop())
          expect(await store.journal?.stranded(50, 10)).toEqual(['k'])
        }),
      )
    }
  })
}
