/**
 * Random walks through everything that can go wrong at once, on a clock that the test moves: calls are lost, doubled
 * and late, pushes vanish, replicas die, restart and are cut off for longer than their lease, the wall clock jumps.
 * Whatever happens: never two holders at once (I1), fences only grow (I6), no effect is
 * committed twice (I9), and nobody waits for ever (I10).
 */
import { describe, expect, it } from '@jest/globals'
import { CoordinationUnavailableError, LeaseLostError, type Turn } from '@botmesh/core'
import {
  FaultyBackend,
  ManualClock,
  MemoryCoordinationHub,
  MemoryCoordinator,
  SeededRandom,
  randomFaults,
  seedOfRun,
} from '@botmesh/core/testing'

const LEASE_MS = 1000
const KEYS = ['x', 'y', 'z']

class Walk {
  readonly violations: string[] = []
  turns = 0
  private readonly committed = new Set<string>()
  private readonly random: SeededRandom
  private readonly clock = new ManualClock()
  private readonly hub = new MemoryCoordinationHub({ clock: this.clock })
  private readonly holder = new Map<string, Turn>()
  private readonly lastFence = new Map<string, number>()
  private readonly live: { coordinator: MemoryCoordinator; cut: (on: boolean) => void; dead: boolean }[] = []

  constructor(seed: number) {
    this.random = new SeededRandom(seed)
  }

  async run(messages: number): Promise<void> {
    for (let n = 0; n < 3; n += 1) this.addReplica()
    let done = 0
    const all = Promise.all(
      Array.from({ length: messages }, async (_, n) => {
        await this.sleep(this.random.int(20_000))
        await this.message(`m${n}`, this.random.pick(KEYS))
        done += 1
      }),
    )
    void this.trouble(20)
    await this.clock.advanceUntil(() => done === messages, 3_600_000)
    await all
    const stops = Promise.all(this.live.map(({ coordinator }) => coordinator.stop())).then(() => (done = -1))
    await this.clock.advanceUntil(() => done === -1)
    await stops
  }

  private addReplica(): void {
    const calm = randomFaults(this.random, 0.05, 1 + this.random.int(100))
    let isCut = false
    const plan = {
      ...calm,
      fault: (call: Parameters<NonNullable<typeof calm.fault>>[0]) =>
        isCut ? ('not-sent' as const) : (calm.fault?.(call) ?? null),
      push: () => !isCut && (calm.push?.() ?? true),
    }
    const coordinator = new MemoryCoordinator({
      hub: this.hub,
      clock: this.clock,
      random: this.random,
      leaseMs: LEASE_MS,
      replicaId: `r${this.random.int(3)}`,
      wrap: (backend) => new FaultyBackend(backend, plan),
    })
    this.live.push({ coordinator, cut: (on) => void (isCut = on), dead: false })
  }

  private async trouble(times: number): Promise<void> {
    for (let n = 0; n < times; n += 1) {
      await this.sleep(this.random.int(1500))
      const one = this.random.pick(this.live.filter(({ dead }) => !dead))
      const kind = this.random.int(4)
      if (kind === 0) {
        one.dead = true
        one.coordinator.crash()
        this.addReplica()
      } else if (kind === 1) {
        one.cut(true)
        await this.sleep(this.random.int(3 * LEASE_MS))
        one.cut(false)
      } else if (kind === 2) {
        one.dead = true
        void one.coordinator.stop()
        this.addReplica()
      } else {
        // Wall clock of the hub: forwards only by less than a lease, which no lease can survive.
        this.clock.shiftWall(-this.random.int(500))
      }
    }
  }

  /** A message is brought to some live replica until its effect is committed. */
  private async message(id: string, key: string): Promise<void> {
    for (;;) {
      const { coordinator } = this.random.pick(this.live.filter(({ dead }) => !dead))
      try {
        const turn = await coordinator.turns.take(key, { dedupeId: id, waitMs: 200 + this.random.int(5000) })
        if (turn === 'duplicate') return
        await this.serve(key, turn, id)
        return
      } catch (error) {
        if (error instanceof CoordinationUnavailableError || error instanceof LeaseLostError) continue
        throw error
      }
    }
  }

  private async serve(key: string, turn: Turn, id: string): Promise<void> {
    const other = this.holder.get(key)
    if (other && !other.signal.aborted) this.violations.push(`I1: two holders of ${key}`)
    if (turn.fence <= (this.lastFence.get(key) ?? 0)) this.violations.push(`I6: fence of ${key} did not grow`)
    this.lastFence.set(key, turn.fence)
    this.holder.set(key, turn)
    this.turns += 1
    await this.sleep(this.random.int(300))
    try {
      turn.assertHeld()
    } finally {
      // From here on the turn may end at any time; the commit is what ends it.
      if (this.holder.get(key) === turn) this.holder.delete(key)
    }
    const result = await turn.commit({ inboundId: id })
    if (result.outcome === 'refused') throw new LeaseLostError(key, 'superseded')
    if (this.committed.has(id)) this.violations.push(`I9: the effect of ${id} was committed twice`)
    this.committed.add(id)
  }

  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.setTimeout(resolve, ms))
  }
}

describe('random walks', () => {
  const first = seedOfRun()
  // More of them by hand: WALKS=2000.
  const walks = Number(process.env['WALKS'] ?? 40)
  for (let seed = first; seed < first + walks; seed += 1) {
    it(`I1, I6, I10: nobody overlaps and everybody is served (SEED=${seed})`, async () => {
      const walk = new Walk(seed)
      await walk.run(60)
      expect(walk.violations).toEqual([])
      expect(walk.turns).toBeGreaterThan(0)
    })
  }
})
