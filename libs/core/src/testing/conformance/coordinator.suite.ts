/**
 * Conformance of coordinators: what every driver must do, whatever its backend (I1–I4, I6–I10). Races and faults are
 * in `coordinator-races.suite.ts`, elections in `election.suite.ts`; `coordinatorSuite` runs all three.
 */
import { CoordinationUnavailableError, LeaseLostError } from '../../contracts/errors.js'
import {
  onBed,
  queued,
  takeTurn,
  watch,
  type CoordinationBed,
  type CoordinatorFixture,
} from './coordination-bed.js'
import { coordinatorRaces } from './coordinator-races.suite.js'
import { electionSuite } from './election.suite.js'
import { rejection, type TestApi } from './test-api.js'

export function coordinatorSuite(api: TestApi, fixture: CoordinatorFixture): void {
  api.describe(`${fixture.name}: coordinator`, () => {
    api.describe('turns', () => turnTests(api, fixture))
    api.describe('sessions', () => sessionTests(api, fixture))
    if (fixture.guarantees.commits) api.describe('committed ids', () => dedupeTests(api, fixture))
    electionSuite(api, fixture)
    coordinatorRaces(api, fixture)
  })
}

async function twoReplicas(bed: CoordinationBed) {
  const [a, b] = [bed.coordinator({ replicaId: 'a' }), bed.coordinator({ replicaId: 'b' })]
  await bed.until(Promise.all([a.start(), b.start()]))
  return { a, b }
}

function turnTests({ it, expect }: TestApi, fixture: CoordinatorFixture): void {
  it(
    'T1, I3: grants one at a time, in the order of the tickets, whatever the replica',
    onBed(fixture, async (bed) => {
      const { a, b } = await twoReplicas(bed)
      const first = await takeTurn(bed, a, 'chat')
      const second = await queued(bed, b, 'chat')
      const third = await queued(bed, a, 'chat')
      const fourth = await queued(bed, b, 'chat')
      let current = first
      for (const next of [second, third, fourth]) {
        expect(next.settled).toBe('pending')
        await current.release()
        const turn = await bed.until(next.promise)
        if (turn === 'duplicate') throw new Error('duplicate')
        expect(turn.fence).toBeGreaterThan(current.fence)
        current = turn
      }
    }),
  )

  it(
    'T1: different chats do not wait for each other',
    onBed(fixture, async (bed) => {
      const { a, b } = await twoReplicas(bed)
      await takeTurn(bed, a, 'one')
      const other = await takeTurn(bed, b, 'other')
      other.assertHeld()
    }),
  )

  it(
    'T2: one replica’s tickets of a chat keep the order of the calls',
    onBed(fixture, async (bed) => {
      const { a } = await twoReplicas(bed)
      const order: number[] = []
      const work = Array.from({ length: 20 }, async (_, n) => {
        const turn = await a.turns.take('chat')
        if (turn === 'duplicate') throw new Error('duplicate')
        order.push(n)
        await turn.release()
      })
      await bed.until(Promise.all(work))
      expect(order).toEqual(Array.from({ length: 20 }, (_, n) => n))
    }),
  )

  it(
    'T7, I8: names the previous holder, whoever it was and however its turn ended',
    onBed(fixture, async (bed) => {
      const { a, b } = await twoReplicas(bed)
      const first = await takeTurn(bed, a, 'chat')
      expect(first.previousHolder).toBeNull()
      await first.release()
      const second = await takeTurn(bed, b, 'chat')
      expect(second.previousHolder).toBe(a.incarnation)
      await second.release()
      const third = await takeTurn(bed, b, 'chat')
      expect(third.previousHolder).toBe(b.incarnation)
    }),
  )

  it(
    'release is idempotent, ends the turn locally and does not touch the next one',
    onBed(fixture, async (bed) => {
      const { a, b } = await twoReplicas(bed)
      const turn = await takeTurn(bed, a, 'chat')
      await bed.until(Promise.all([turn.release(), turn.release()]))
      const next = await takeTurn(bed, b, 'chat')
      await bed.until(turn.release())
      expect(
        (await rejection(Promise.resolve().then(() => turn.assertHeld()))) instanceof LeaseLostError,
      ).toBe(true)
      expect(turn.signal.aborted).toBe(false)
      const third = await queued(bed, a, 'chat')
      expect(third.settled).toBe('pending')
      next.assertHeld()
    }),
  )

  it(
    'T6: a wait that is too long rejects, says how long, and leaves no ticket behind',
    onBed(fixture, async (bed) => {
      const { a, b } = await twoReplicas(bed)
      // Where its turns are it has a session already: what is short is the wait, not the beginning.
      await (await takeTurn(bed, b, 'chat')).release()
      const held = await takeTurn(bed, a, 'chat')
      const error = await bed.until(rejection(b.turns.take('chat', { waitMs: 60 })))
      expect(error instanceof CoordinationUnavailableError).toBe(true)
      expect(error).toMatchObject({ details: { why: 'timeout', key: 'chat' }, retryable: true })
      await held.release()
      const again = await takeTurn(bed, a, 'chat')
      expect(again.previousHolder).toBe(a.incarnation)
    }),
  )

  it(
    'a signal gives the ticket up, before and while it waits',
    onBed(fixture, async (bed) => {
      const { a, b } = await twoReplicas(bed)
      const reason = new Error('enough')
      expect(await rejection(a.turns.take('chat', { signal: AbortSignal.abort(reason) }))).toBe(reason)
      const held = await takeTurn(bed, a, 'chat')
      const giveUp = new AbortController()
      const waiting = await queued(bed, b, 'chat', { signal: giveUp.signal })
      giveUp.abort(reason)
      expect(await bed.until(rejection(waiting.promise))).toBe(reason)
      await held.release()
      const next = await takeTurn(bed, a, 'chat')
      expect(next.previousHolder).toBe(a.incarnation)
    }),
  )

  it(
    'onTicket is called once, whether the ticket is granted at once or waits',
    onBed(fixture, async (bed) => {
      const { a, b } = await twoReplicas(bed)
      let calls = 0
      const count = (): void => void (calls += 1)
      const held = await takeTurn(bed, a, 'chat', { onTicket: count })
      expect(calls).toBe(1)
      let given = (): void => undefined
      const ticket = new Promise<void>((resolve) => (given = resolve))
      const onTicket = (): void => {
        count()
        given()
      }
      const waiting = watch(b.turns.take('chat', { onTicket }))
      await bed.until(ticket)
      expect(calls).toBe(2)
      await held.release()
      await bed.until(waiting.promise)
      expect(calls).toBe(2)
    }),
  )

  it(
    'C4: another prefix never meets this one',
    onBed(fixture, async (bed) => {
      const { a } = await twoReplicas(bed)
      const here = await takeTurn(bed, a, 'chat')
      const there = await takeTurn(bed, bed.stranger(), 'chat')
      expect(there.previousHolder).toBeNull()
      here.assertHeld()
    }),
  )
}

function sessionTests({ it, expect }: TestApi, fixture: CoordinatorFixture): void {
  it(
    'scenario 2, L1: a turn outlives many leases while its replica lives',
    onBed(fixture, async (bed) => {
      const { a, b } = await twoReplicas(bed)
      const turn = await takeTurn(bed, a, 'chat')
      const waiting = await queued(bed, b, 'chat')
      await bed.pass(bed.leaseMs * 2.5)
      turn.assertHeld()
      expect(waiting.settled).toBe('pending')
      await turn.release()
      await bed.until(waiting.promise)
    }),
  )

  it(
    'scenario 3, L1: a dead holder blocks its chat for its lease and no longer; other chats not at all',
    onBed(fixture, async (bed) => {
      const { a, b } = await twoReplicas(bed)
      const lost = await takeTurn(bed, a, 'chat')
      const waiting = await queued(bed, b, 'chat')
      const since = bed.elapsed()
      await bed.crash(a)
      await (await takeTurn(bed, b, 'other')).release()
      const turn = await bed.until(waiting.promise)
      if (turn === 'duplicate') throw new Error('duplicate')
      expect(bed.elapsed() - since).toBeGreaterThan(bed.leaseMs / 2)
      expect(bed.elapsed() - since).toBeLessThan(bed.leaseMs * 1.05 + 200)
      expect(turn.fence).toBeGreaterThan(lost.fence)
      expect(turn.previousHolder).toBe(a.incarnation)
    }),
  )

  it(
    'scenario 4, T8, I4: tickets of a dead replica are skipped without waiting for them',
    onBed(fixture, async (bed) => {
      const { a, b } = await twoReplicas(bed)
      const c = bed.coordinator({ replicaId: 'c' })
      const held = await takeTurn(bed, a, 'chat')
      await queued(bed, b, 'chat')
      await queued(bed, b, 'chat')
      const behind = await queued(bed, c, 'chat')
      await bed.crash(b)
      await bed.pass(bed.leaseMs * 1.1)
      const since = bed.elapsed()
      await held.release()
      await bed.until(behind.promise)
      expect(bed.elapsed() - since).toBeLessThan(bed.leaseMs / 4)
    }),
  )

  it(
    'scenario 11, C3: a replica restarted under its old id inherits nothing',
    onBed(fixture, async (bed) => {
      const { a } = await twoReplicas(bed)
      const old = await takeTurn(bed, a, 'chat')
      await bed.crash(a)
      const again = bed.coordinator({ replicaId: 'a' })
      const since = bed.elapsed()
      const turn = await takeTurn(bed, again, 'chat')
      expect(again.replicaId).toBe(a.replicaId)
      expect(again.incarnation).not.toBe(a.incarnation)
      expect(bed.elapsed() - since).toBeGreaterThan(bed.leaseMs / 2)
      expect(turn.previousHolder).toBe(a.incarnation)
      expect(turn.fence).toBeGreaterThan(old.fence)
    }),
  )

  it(
    'scenario 9, I6: a backend that restarts empty ends all turns; replicas come back and fences are higher',
    onBed(fixture, async (bed) => {
      const { a, b } = await twoReplicas(bed)
      const lost: string[] = []
      a.onLost(({ key, reason }) => lost.push(`${key} ${reason}`))
      const before = a.incarnation
      const turn = await takeTurn(bed, a, 'chat')
      const waiting = await queued(bed, b, 'chat')
      await bed.wipe()
      await bed.until(new Promise((resolve) => turn.signal.addEventListener('abort', resolve)))
      expect(lost.length).toBe(1)
      const next = await bed.until(waiting.promise)
      if (next === 'duplicate') throw new Error('duplicate')
      await next.release()
      const again = await takeTurn(bed, a, 'chat')
      expect(a.incarnation).not.toBe(before)
      expect(again.fence).toBeGreaterThan(turn.fence)
    }),
  )

  it(
    'stop releases at once, aborts what is held with reason "stopped", and rejects what waits',
    onBed(fixture, async (bed) => {
      const { a, b } = await twoReplicas(bed)
      const c = bed.coordinator({ replicaId: 'c' })
      const held = await takeTurn(bed, a, 'chat')
      const mine = await queued(bed, a, 'chat')
      const next = await queued(bed, c, 'chat')
      const since = bed.elapsed()
      await bed.until(a.stop())
      expect(await rejection(mine.promise)).toMatchObject({ details: { why: 'stopped' } })
      expect(held.signal.reason).toMatchObject({ reason: 'stopped' })
      await bed.until(next.promise)
      expect(bed.elapsed() - since).toBeLessThan(bed.leaseMs / 2)
      expect(await rejection(a.turns.take('chat'))).toMatchObject({ details: { why: 'stopped' } })
      await bed.until(a.stop())
      expect(b.status.status).toBe('live')
      expect(a.status.status).toBe('stopped')
    }),
  )

  it(
    'start is idempotent, and a stopped coordinator can be started again under a new incarnation',
    onBed(fixture, async (bed) => {
      const { a } = await twoReplicas(bed)
      const before = a.incarnation
      await bed.until(Promise.all([a.start(), a.start()]))
      expect(a.incarnation).toBe(before)
      await bed.until(a.stop())
      await bed.until(a.start())
      expect(a.incarnation).not.toBe(before)
      await (await takeTurn(bed, a, 'chat')).release()
    }),
  )
}

function dedupeTests({ it, expect }: TestApi, fixture: CoordinatorFixture): void {
  it(
    'Z3: only a committed id is a duplicate; one in progress queues and is dropped at its grant',
    onBed(fixture, async (bed) => {
      const { a, b } = await twoReplicas(bed)
      const turn = await takeTurn(bed, a, 'chat', { dedupeId: 'm1' })
      const copy = await queued(bed, b, 'chat', { dedupeId: 'm1' })
      const other = await queued(bed, b, 'chat', { dedupeId: 'm2' })
      expect(await bed.until(turn.commit({ inboundId: 'm1' }))).toMatchObject({ outcome: 'committed' })
      expect(await bed.until(copy.promise)).toBe('duplicate')
      const next = await bed.until(other.promise)
      if (next === 'duplicate') throw new Error('duplicate')
      // Not committed: its copy is a message like any other.
      await next.release()
      expect(await bed.until(b.turns.take('chat', { dedupeId: 'm1' }))).toBe('duplicate')
      await (await takeTurn(bed, a, 'chat', { dedupeId: 'm2' })).release()
    }),
  )

  it(
    'Z4, I5: a commit ends the turn; after the end, and from a lost turn, it is refused or rejected',
    onBed(fixture, async (bed) => {
      const { a, b } = await twoReplicas(bed)
      const turn = await takeTurn(bed, a, 'chat')
      expect(await bed.until(turn.commit({ inboundId: 'm1' }, { release: false }))).toMatchObject({
        outcome: 'committed',
      })
      turn.assertHeld()
      await bed.until(turn.commit({ inboundId: 'm2' }))
      expect((await rejection(turn.commit({ inboundId: 'm3' }))) instanceof LeaseLostError).toBe(true)
      const next = await takeTurn(bed, b, 'chat')
      await bed.until(turn.release())
      next.assertHeld()
    }),
  )
}
