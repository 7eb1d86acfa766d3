/** Conformance of coordinators under concurrency and with faults: an oracle watches for overlap and disorder. */
import type { Coordinator } from '../../contracts/coordinator.js'
import type { CoordinationBackend } from '../../runtime/coordination-backend.js'
import { FaultyBackend, randomFaults, type FaultPlan } from '../faulty-backend.js'
import { SeededRandom, seedOfRun } from '../seeded-random.js'
import { onBed, queued, takeTurn, type CoordinationBed, type CoordinatorFixture } from './coordination-bed.js'
import type { TestApi } from './test-api.js'

/** Sees every turn begin and end, in one process' own order. */
class Oracle {
  readonly violations: string[] = []
  private readonly holder = new Map<string, string>()
  private readonly lastFence = new Map<string, number>()
  turns = 0

  begin(key: string, who: string, fence: number): void {
    const other = this.holder.get(key)
    if (other !== undefined) this.violations.push(`I1: ${who} began ${key} while ${other} held it`)
    if (fence <= (this.lastFence.get(key) ?? 0))
      this.violations.push(`I6: fence ${fence} of ${key} did not grow`)
    this.holder.set(key, who)
    this.lastFence.set(key, fence)
    this.turns += 1
  }

  end(key: string): void {
    this.holder.delete(key)
  }
}

async function work(oracle: Oracle, who: string, coordinator: Coordinator, key: string, rounds: number) {
  for (let round = 0; round < rounds; round += 1) {
    const turn = await coordinator.turns.take(key)
    if (turn === 'duplicate') throw new Error('duplicate')
    oracle.begin(key, who, turn.fence)
    await Promise.resolve()
    oracle.end(key)
    await turn.release()
  }
}

export function coordinatorRaces({ describe, it, expect }: TestApi, fixture: CoordinatorFixture): void {
  const rounds = fixture.rounds ?? 200

  describe('races', () => {
    it(
      'scenario 1, I1: releases racing with takes of other replicas never leave a ticket waiting',
      onBed(fixture, async (bed) => {
        const oracle = new Oracle()
        const replicas = ['a', 'b', 'c'].map((replicaId) => bed.coordinator({ replicaId }))
        const all = replicas.map((one) => work(oracle, one.replicaId, one, 'chat', rounds))
        await bed.until(Promise.all(all), 120_000)
        expect(oracle.violations).toEqual([])
        expect(oracle.turns).toBe(3 * rounds)
      }),
      120_000,
    )

    it(
      'T1: many chats over two replicas, many turns in flight',
      onBed(fixture, async (bed) => {
        const oracle = new Oracle()
        const replicas = ['a', 'b'].map((replicaId) => bed.coordinator({ replicaId }))
        const keys = Array.from({ length: 20 }, (_, n) => `chat-${n}`)
        const all = keys.flatMap((key) =>
          replicas.map((one) => work(oracle, one.replicaId, one, key, Math.ceil(rounds / 20))),
        )
        await bed.until(Promise.all(all), 120_000)
        expect(oracle.violations).toEqual([])
      }),
      120_000,
    )
  })

  describe('faults', () => {
    for (let run = 0; run < 3; run += 1) {
      const seed = seedOfRun() + run
      it(
        `I1, I10, L3: lost, doubled, late calls and lost pushes cost time only (SEED=${seed})`,
        onBed(fixture, async (bed) => {
          const oracle = new Oracle()
          const random = new SeededRandom(seed)
          const replicas = ['a', 'b', 'c'].map((replicaId) =>
            bed.coordinator({
              replicaId,
              wrap: (backend) => new FaultyBackend(backend, randomFaults(random, 0.1)),
            }),
          )
          const all = ['x', 'y'].flatMap((key) =>
            replicas.map((one) => work(oracle, one.replicaId, one, key, Math.ceil(rounds / 20))),
          )
          await bed.until(Promise.all(all), 120_000)
          expect(oracle.violations).toEqual([])
          expect(oracle.turns).toBe(6 * Math.ceil(rounds / 20))
        }),
        120_000,
      )
    }

    it(
      'I10, scenario 8: a lost push is repaired by the next heartbeat',
      onBed(fixture, async (bed) => {
        const { a, b } = pair(bed, { push: () => false })
        const held = await takeTurn(bed, a, 'chat')
        const waiting = await queued(bed, b, 'chat')
        const since = bed.elapsed()
        await held.release()
        await bed.until(waiting.promise)
        expect(bed.elapsed() - since).toBeLessThan(bed.leaseMs / 3 + 300)
      }),
    )

    it(
      'Z1: without pushes waiters poll, and hand-offs stay fast',
      onBed(fixture, async (bed) => {
        const { a, b } = pair(bed, { push: () => false, pushLive: false })
        const held = await takeTurn(bed, a, 'chat')
        const waiting = await queued(bed, b, 'chat')
        const since = bed.elapsed()
        await held.release()
        await bed.until(waiting.promise)
        expect(bed.elapsed() - since).toBeLessThan(250)
      }),
    )

    it(
      'L3: a release that fails is repaired while its replica lives',
      onBed(fixture, async (bed) => {
        let failing = true
        const plan: FaultPlan = { fault: (call) => (call === 'release' && failing ? 'not-sent' : null) }
        const { a, b } = pair(bed, {}, plan)
        const held = await takeTurn(bed, a, 'chat')
        const waiting = await queued(bed, b, 'chat')
        const since = bed.elapsed()
        await bed.until(held.release())
        await bed.until(waiting.promise)
        expect(bed.elapsed() - since).toBeLessThan(bed.leaseMs / 3 + 300)
        failing = false
      }),
    )

    it(
      'L2, scenario 10: a replica whose heartbeats fail lets go by itself before its lease ends in the backend',
      onBed(fixture, async (bed) => {
        const cut: FaultPlan = {}
        const { a, b } = pair(bed, {}, cut)
        const held = await takeTurn(bed, a, 'chat')
        const waiting = await queued(bed, b, 'chat')
        let lostAt = Infinity
        held.signal.addEventListener('abort', () => (lostAt = bed.elapsed()))
        cut.fault = () => 'not-sent'
        await bed.until(waiting.promise)
        expect(lostAt).toBeLessThanOrEqual(bed.elapsed())
        expect(held.signal.reason).toMatchObject({ reason: 'frozen' })
        const error = await bed.until(
          a.turns.take('other', { waitMs: 200 }).then(
            () => null,
            (reason: unknown) => reason,
          ),
        )
        expect(error).toMatchObject({ details: { why: 'unreachable' } })
        expect(a.status.status).toBe('unreachable')
        cut.fault = () => null
        await (await takeTurn(bed, a, 'other')).release()
      }),
    )

    it(
      'Z2: idle replicas cost heartbeats only, however many chats they hold and wait for',
      onBed(fixture, async (bed) => {
        const { a, b, faultyA, faultyB } = pair(bed, {})
        const keys = Array.from({ length: 50 }, (_, n) => `chat-${n}`)
        await Promise.all(keys.map((key) => takeTurn(bed, a, key)))
        await Promise.all(keys.map((key) => queued(bed, b, key)))
        const before = (faultyA()?.totalCalls ?? 0) + (faultyB()?.totalCalls ?? 0)
        await bed.pass(bed.leaseMs * 2)
        const calls = (faultyA()?.totalCalls ?? 0) + (faultyB()?.totalCalls ?? 0) - before
        // Two replicas, two leases: six heartbeats each, and at most as many looks at a foreign session.
        expect(calls).toBeLessThanOrEqual(16)
      }),
    )
  })
}

function pair(bed: CoordinationBed, planB: FaultPlan, planA: FaultPlan = {}) {
  let faultyA: FaultyBackend | undefined
  let faultyB: FaultyBackend | undefined
  const wrapA = (backend: CoordinationBackend) => (faultyA = new FaultyBackend(backend, planA))
  const wrapB = (backend: CoordinationBackend) => (faultyB = new FaultyBackend(backend, planB))
  return {
    a: bed.coordinator({ replicaId: 'a', wrap: wrapA }),
    b: bed.coordinator({ replicaId: 'b', wrap: wrapB }),
    faultyA: () => faultyA,
    faultyB: () => faultyB,
  }
}
