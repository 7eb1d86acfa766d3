/**
 * Random lives of a scheduler: replicas die, freeze, thaw, stop and come back, runs take their time or fail, and the
 * store fails now and then. Whatever happens: no two runs of a task at a time (of replicas that run), each occurrence is
 * ended exactly once as far as the store knows, none is missed, and what the store accepts comes in the order of fences.
 */
import { describe, expect, it } from '@jest/globals'
import { type Bot, type TaskContext } from '../../src/index.js'
import { SeededRandom } from '../../src/testing/index.js'
import { Mesh, type Replica } from '../bot/support/mesh.js'

const LEASE_MS = 6000
const STEPS = 60
const MINUTE = 60_000

interface Run {
  replica: Replica
  due: number
  fence: number
  over: boolean
}

class Walk {
  readonly mesh: Mesh
  readonly faults: string[] = []
  private readonly runs = new Set<Run>()
  private readonly frozen = new Set<Replica>()
  private readonly settled: { due: number; fence: number }[] = []
  private storeFails = false
  /** When the task was first written about. */
  private known = Infinity
  private calming = false
  private readonly from: number

  constructor(
    private readonly random: SeededRandom,
    place: 'coordinator' | 'leases',
  ) {
    const options: ConstructorParameters<typeof Mesh>[1] = { leaseMs: LEASE_MS }
    this.mesh = new Mesh((bot) => this.define(bot), options)
    const lease = place === 'leases' ? { lease: this.mesh.store.leases(), leaseMs: LEASE_MS } : {}
    options.config = {
      scheduler: { ...lease, graceMs: '1h', maxAttempts: 1000, maxRetryMs: '2s' },
      logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    }
    this.from = this.mesh.clock.now()
    this.watchStore()
  }

  async live(): Promise<void> {
    for (let n = 0; n < 3; n += 1) await this.mesh.add()
    for (let n = 0; n < STEPS; n += 1) {
      await this.act()
      await this.mesh.clock.advance(this.random.next() * LEASE_MS)
    }
    await this.calm()
  }

  /** Everything recovers; then all that was due must be done. */
  private async calm(): Promise<void> {
    this.storeFails = false
    this.calming = true
    for (const replica of this.frozen) replica.clock.resume()
    this.frozen.clear()
    await this.mesh.add()
    await this.mesh.clock.advance(5 * MINUTE)
    const last = Math.floor((this.mesh.clock.now() - this.from) / 10_000) - 6
    const done = this.settled.map(({ due }) => (due - this.from) / 10_000)
    // Before its first write the task is not known to anybody.
    for (let n = Math.floor((this.known - this.from) / 10_000) + 1; n <= last; n += 1)
      if (!done.includes(n)) this.faults.push(`occurrence ${n} was never ended`)
    if (new Set(done).size < done.length) this.faults.push('an occurrence was ended twice')
    const fences = this.settled.map(({ fence }) => fence)
    if (fences.some((fence, n) => fence < (fences[n - 1] ?? 0)))
      this.faults.push('an older fence was accepted')
  }

  private async act(): Promise<void> {
    const live = this.mesh.replicas.filter(
      (one) => one.bot.health().status === 'running' && !this.frozen.has(one),
    )
    const one = live[Math.floor(this.random.next() * live.length)]
    const chance = this.random.next()
    if (one === undefined || live.length < 2) return void (await this.mesh.add())
    if (chance < 0.2) return this.die(one)
    if (chance < 0.4) return this.freeze(one)
    if (chance < 0.5) return void (await this.mesh.run(one.bot.stop()))
    if (chance < 0.6) this.storeFails = !this.storeFails
    const thawing = [...this.frozen].filter((other) => !this.dead.has(other))[0]
    if (chance > 0.7 && thawing !== undefined) {
      this.frozen.delete(thawing)
      thawing.clock.resume()
    }
  }

  private readonly dead = new Set<Replica>()

  private die(replica: Replica): void {
    this.dead.add(replica)
    replica.clock.stop()
    replica.coordinator.crash()
    this.frozen.add(replica)
  }

  private freeze(replica: Replica): void {
    replica.clock.pause()
    this.frozen.add(replica)
  }

  private define(bot: Bot): void {
    bot.schedule('*/10 * * * * *', { id: 'walk' }, async (task) => {
      const replica = this.mesh.replicas.find((one) => one.bot === bot)
      if (replica === undefined) throw new Error('Nobody runs this.')
      await this.work(replica, task)
    })
  }

  private async work(replica: Replica, task: TaskContext): Promise<void> {
    const run: Run = { replica, due: +task.occurrence, fence: task.fence, over: false }
    for (const other of this.runs) {
      // One that does not run, or has been told to end, may not have noticed yet; its fence is lower.
      const heedless = this.dead.has(other.replica) || this.frozen.has(other.replica) || other.over
      if (!heedless) this.faults.push(`two at a time: ${other.due - this.from} and ${run.due - this.from}`)
      if (other.fence > run.fence) this.faults.push('a lower fence after a higher one')
    }
    this.runs.add(run)
    task.signal.addEventListener('abort', () => (run.over = true))
    try {
      await this.takesTime(replica, task.signal)
      if (this.random.next() < 0.1) throw new Error('no luck')
    } finally {
      this.runs.delete(run)
    }
  }

  private takesTime(replica: Replica, signal: AbortSignal): Promise<void> {
    const ms = this.random.next() < 0.2 ? this.random.next() * 3 * LEASE_MS : this.random.next() * 500
    return new Promise((resolve, reject) => {
      replica.clock.setTimeout(resolve, ms)
      signal.addEventListener('abort', () => reject(signal.reason as Error))
    })
  }

  private pass(ms: number): Promise<void> {
    return new Promise((resolve) => this.mesh.clock.setTimeout(resolve, ms))
  }

  /** What the store accepts as ended, and its failures: before the write, or after it, so that the answer is lost. */
  private watchStore(): void {
    const { store } = this.mesh
    const write = store.setCheckpointIf.bind(store)
    const seen = new Set<string>()
    store.setCheckpointIf = async (key, checkpoint, expected, fence) => {
      const fails = this.storeFails && this.random.next() < 0.5
      if (fails && this.random.next() < 0.5) throw new Error('not written')
      // On its way for so long that its writer may be frozen, dead or succeeded when it lands.
      if (!this.calming && this.random.next() < 0.2) await this.pass(this.random.next() * 3 * LEASE_MS)
      const before = (await store.getCheckpoint(key))?.state as { claim?: { occurrence: number } } | undefined
      const saved = await write(key, checkpoint, expected, fence)
      const { claim, settled } = checkpoint.state as { claim: object | null; settled: number }
      if (
        saved &&
        !seen.has(checkpoint.revision) &&
        claim === null &&
        before?.claim?.occurrence === settled
      ) {
        this.settled.push({ due: settled, fence })
      }
      if (saved) seen.add(checkpoint.revision)
      if (saved) this.known = Math.min(this.known, settled)
      if (fails) throw new Error('written, and the answer was lost')
      return saved
    }
  }
}

function nothing(): void {
  // Says nothing: a walk reports what went wrong by itself.
}

describe.each(['coordinator', 'leases'] as const)(
  'scenario 32, J1: random lives, led through %s',
  (place) => {
    it.each(Array.from({ length: 12 }, (_, n) => n + 1))('seed %i', async (seed) => {
      const walk = new Walk(new SeededRandom(seed), place)
      await walk.live()
      expect(walk.faults).toEqual([])
    })
  },
)
