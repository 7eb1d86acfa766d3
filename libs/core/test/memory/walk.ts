/**
 * A random walk through everything that can go wrong at once, on a clock that the test moves: calls are lost, doubled
 * and late, pushes vanish, replicas die, restart and are cut off for longer than their lease, the wall clock jumps.
 * Whatever happens: never two holders at once (I1), fences only grow (I6), no effect is
 * committed twice (I9), and nobody waits for ever (I10).
 */
import type { BreakableRule } from '../../src/kernel/turn-state.js'
import {
  CoordinationUnavailableError,
  LeaseLostError,
  type CommitRequest,
  type CommitResult,
  type CoordinationBackend,
  type Turn,
} from '@botmesh/core'
import {
  FaultyBackend,
  ManualClock,
  MemoryCoordinationHub,
  MemoryCoordinator,
  SeededRandom,
  randomFaults,
} from '@botmesh/core/testing'

const LEASE_MS = 1000
const KEYS = ['x', 'y', 'z']

/** Sees what the hub has stored before anything can get lost. */
class Watched extends FaultyBackend {
  constructor(
    inner: CoordinationBackend,
    private readonly stored: (request: CommitRequest) => void,
  ) {
    super(inner, {})
  }

  override async commit(request: CommitRequest): Promise<CommitResult> {
    const result = await super.commit(request)
    if (result.outcome === 'committed') this.stored(request)
    return result
  }
}

export class Walk {
  readonly violations: string[] = []
  turns = 0
  /** Per message, the commits that the hub has stored: whatever the replicas learned of it. */
  private readonly stored = new Map<string, Set<string>>()
  private readonly random: SeededRandom
  private readonly clock = new ManualClock()
  private readonly hub: MemoryCoordinationHub
  private readonly holder = new Map<string, Turn>()
  private readonly lastFence = new Map<string, number>()
  private readonly live: { coordinator: MemoryCoordinator; cut: (on: boolean) => void; dead: boolean }[] = []

  constructor(seed: number, broken: BreakableRule[] = []) {
    this.random = new SeededRandom(seed)
    this.hub = new MemoryCoordinationHub({ clock: this.clock, broken })
  }

  async run(messages: number, limitMs = 600_000): Promise<void> {
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
    await this.clock.advanceUntil(() => done === messages, limitMs)
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
      wrap: (backend) => new FaultyBackend(new Watched(backend, (request) => this.noteStored(request)), plan),
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

  private noteStored({ commitId, effects }: CommitRequest): void {
    const id = effects.inboundId ?? ''
    const commits = this.stored.get(id) ?? new Set()
    this.stored.set(id, commits.add(commitId))
    if (commits.size > 1) this.violations.push(`I9: the effect of ${id} was committed twice`)
  }

  /** A message is brought to some live replica until its effect is committed. */
  private async message(id: string, key: string): Promise<void> {
    for (;;) {
      const { coordinator } = this.random.pick(this.live.filter(({ dead }) => !dead))
      try {
        const turn = await coordinator.turns.take(key, { dedupeId: id, waitMs: 200 + this.random.int(5000) })
        if (turn === 'duplicate') return
        if (await this.serve(key, turn, id)) return
      } catch (error) {
        if (error instanceof CoordinationUnavailableError || error instanceof LeaseLostError) continue
        throw error
      }
    }
  }

  /** @returns false if this attempt failed, as handlers do. */
  private async serve(key: string, turn: Turn, id: string): Promise<boolean> {
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
    if (this.random.next() < 0.3) {
      await turn.release()
      return false
    }
    const result = await turn.commit({ inboundId: id })
    return result.outcome === 'committed'
  }

  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.setTimeout(resolve, ms))
  }
}
