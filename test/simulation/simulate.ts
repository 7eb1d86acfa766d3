/**
 * A bot's life as two or three replicas, drawn from a seed: users write, replicas die, freeze, stop and start, sends
 * fail, answers are slow. Afterwards everything is given time to settle, and an oracle (oracle.ts) looks at what
 * users saw and what the store holds. The same seed is the same run.
 */
import { SeededRandom, type CallFaultOptions } from '@botmesh/core/testing'
import type { Bot, BotConfig } from '@botmesh/core'
import type { Replica } from '../conformance/handover/bed.js'
import { MemoryBed } from '../conformance/handover/memory-bed.js'
import { faultsOf, type Spoken } from './oracle.js'
import { BODIES, define } from './user-side.js'

const CHATS = ['1', '2']
const MOST_REPLICAS = 3
const STEPS = 40
/** Leases that are left at the end for everything that is still to happen. */
const SETTLE_LEASES = 12

interface Delivery {
  id: string
  chatId: string
  body: string
  /** Replica that it was last handed to; it is handed to another one if that one does not accept it. */
  to: Replica
  state: 'open' | 'accepted' | 'refused'
  sinceMs: number
}

export interface SimulationResult {
  seed: number
  /** What is wrong; empty if nothing. */
  faults: string[]
  /** What happened, in order, for whoever looks into it. */
  story: string[]
}

/** What keeps a promise; switched off to see that the oracle misses it. */
export type Guard = 'outbox' | 'journal' | 'turns'

export async function simulate(seed: number, without?: Guard): Promise<SimulationResult> {
  const run = new Simulation(seed, without)
  try {
    await run.play()
    return { seed, faults: await run.faults(), story: run.story }
  } finally {
    await run.end()
  }
}

class Simulation {
  readonly story: string[] = []
  private readonly random: SeededRandom
  private readonly durable: boolean
  private readonly bed: MemoryBed
  private readonly replicas: Replica[] = []
  private readonly up = new Set<Replica>()
  private readonly frozen = new Map<Replica, number>()
  private readonly deliveries: Delivery[] = []
  private readonly spoken: Spoken[] = []
  /** Fence that a replica's code acts under, by `<replica> <chat>`. */
  private readonly acting = new Map<string, number | null>()
  /** The last one that was started; it may speak before its start has ended. */
  private starting = ''
  private overdue: string[] = []
  /** No more faults. */
  private calm = false

  constructor(
    readonly seed: number,
    private readonly without: Guard | undefined,
  ) {
    this.random = new SeededRandom(seed)
    this.durable = this.random.next() < 0.7 || without !== undefined
    const placement = this.random.next() < 0.5 && without !== 'turns' ? 'shared' : 'separate'
    this.bed = new MemoryBed(placement, { apart: without === 'turns' })
    this.note(`durability ${String(this.durable)}, data ${this.bed.placement}`)
    this.bed.platform.onSend(({ to, text, by }) => {
      const name = this.replicas.find(({ provider }) => provider === by)?.name ?? this.starting
      this.spoken.push({ chatId: to.chatId, text, fence: this.acting.get(`${name} ${to.chatId}`) ?? null })
      this.note(`${name} says to ${to.chatId}: ${text}`)
    })
  }

  async play(): Promise<void> {
    await this.start()
    await this.start()
    for (let step = 0; step < STEPS; step++) {
      await this.step()
      await this.pass(this.random.next() * 0.3)
    }
    for (const replica of this.frozen.keys()) replica.thaw()
    this.frozen.clear()
    for (let lease = 0; lease < SETTLE_LEASES; lease++) await this.pass(1)
    await this.keepOneUp()
    this.overdue = await this.waiting()
    this.calm = true
    // A chat that is stuck shows now.
    for (const chatId of CHATS) this.write(chatId, 'hello')
    for (let lease = 0; lease < 4; lease++) await this.pass(1)
  }

  async faults(): Promise<string[]> {
    const { durable, spoken, replicas, bed } = this
    return faultsOf({
      durable,
      spoken,
      errors: replicas.flatMap(({ errors }) => errors),
      accepted: this.deliveries.filter(({ state }) => state === 'accepted'),
      unaccepted: this.deliveries.filter(({ state }) => state !== 'accepted').map(({ id }) => id),
      last: this.deliveries.slice(-CHATS.length).map(({ id }) => id),
      kept: await this.keptAnswers(),
      seq: (chatId, id) => bed.arrivalOf(keyOf(chatId), id),
      pending: async (chatId) => (await bed.store.journal.oldest(keyOf(chatId)))?.id ?? null,
      chats: CHATS,
      overdue: this.overdue,
    })
  }

  private async keptAnswers(): Promise<string[]> {
    const found = await Promise.all(CHATS.map((chatId) => this.bed.store.getCheckpoint(keyOf(chatId))))
    return found.map((checkpoint) => JSON.stringify(checkpoint?.state['answers'] ?? []))
  }

  /** Chats whose question has a timeout, and no answer yet. */
  private async waiting(): Promise<string[]> {
    const found = await Promise.all(CHATS.map((chatId) => this.bed.store.getCheckpoint(keyOf(chatId))))
    return CHATS.filter((_, index) => {
      const { wait, answer } = found[index] ?? {}
      return wait?.timeoutMs !== undefined && answer === undefined
    })
  }

  async end(): Promise<void> {
    this.up.clear()
    await this.bed.close()
  }

  private async step(): Promise<void> {
    await this.keepOneUp()
    const draw = this.random.next()
    if (draw < 0.62) return this.write(this.random.pick(CHATS), this.random.pick(BODIES))
    if (draw < 0.7) return this.kill()
    if (draw < 0.78) return this.freeze()
    if (draw < 0.84) return this.stop()
    if (draw < 0.94) return this.start()
    this.failSend()
  }

  private async start(needed = false): Promise<void> {
    if (!needed && [...this.up].filter(({ faults }) => faults.alive).length >= MOST_REPLICAS) return
    const name = `r${this.replicas.length}`
    const made: { replica?: Replica } = {}
    const fate = this.fate()
    this.starting = name
    this.note(`${name} starts${fate === undefined ? '' : `; ${fate.what} at call ${fate.at}`}`)
    const counts = () => !this.calm && made.replica !== undefined && this.up.has(made.replica)
    const config: Partial<BotConfig> = { drainMs: 3000, ...this.durability() }
    const replica = await this.bed.replica(name, {
      config,
      ...(fate === undefined ? {} : { faults: { ...fate, counts } }),
      coordination: { handover: { fallback: 'restart' }, settleMs: '10s' },
      define: (bot: Bot) =>
        define(
          bot,
          () => made.replica?.clock ?? this.bed.clock,
          (chatId, fence) => this.acting.set(`${name} ${chatId}`, fence),
        ),
    })
    made.replica = replica
    this.replicas.push(replica)
    this.up.add(replica)
  }

  private durability(): Pick<BotConfig, 'durability'> {
    if (!this.durable || this.without === 'journal') return {}
    return { durability: { outbox: this.without !== 'outbox' } }
  }

  /** Some die, or miss an answer, in the middle of a call. */
  private fate(): Omit<CallFaultOptions, 'onCrash' | 'counts'> | undefined {
    if (this.random.next() < 0.6) return undefined
    const leases = this.random.next() * 3
    return {
      at: 1 + this.random.int(80),
      what: this.random.pick(['crash', 'crash-in-flight', 'lose-reply']),
      // A messenger's API cannot be fenced: what it gets late it sends late (docs/invariants.md).
      arrive: (request, name) => this.bed.later(name === 'provider.send' ? 0 : leases, request),
    }
  }

  private kill(): void {
    const replica = this.spare()
    if (replica === null) return
    this.note(`${replica.name} dies`)
    this.up.delete(replica)
    this.frozen.delete(replica)
    replica.kill()
  }

  private freeze(): void {
    const replica = this.spare()
    if (replica === null) return
    const leases = this.random.next() * 2.5
    this.note(`${replica.name} freezes for ${leases.toFixed(1)} leases`)
    this.frozen.set(replica, this.bed.clock.monotonic() + leases * this.bed.leaseMs)
    replica.freeze()
  }

  private async stop(): Promise<void> {
    const replica = this.spare()
    if (replica === null) return
    this.note(`${replica.name} stops`)
    this.up.delete(replica)
    await replica.stop()
  }

  private failSend(): void {
    const replica = this.random.pick(this.running())
    // Without durability nobody repeats what a transport refused again and again.
    const outcome = this.durable ? this.random.pick(['retryable', 'uncertain'] as const) : 'uncertain'
    this.note(`the next send of ${replica.name} fails: ${outcome}`)
    replica.provider.failNextSends(outcome)
  }

  private write(chatId: string, body: string): void {
    const to = this.random.pick(this.running())
    const id = `m${this.deliveries.length + 1}`
    const delivery: Delivery = { id, chatId, body, to, state: 'open', sinceMs: 0 }
    this.deliveries.push(delivery)
    this.deliver(delivery, to)
  }

  private deliver(delivery: Delivery, to: Replica): void {
    const { id, chatId, body } = delivery
    this.note(`${chatId} writes ${id} "${body}" to ${to.name}`)
    Object.assign(delivery, { to, state: 'open', sinceMs: this.bed.clock.monotonic() })
    to.receive({ id, chatId, body }).then(
      () => (delivery.state = 'accepted'),
      () => {
        if (delivery.state === 'open' && delivery.to === to) delivery.state = 'refused'
      },
    )
  }

  /** Lets time pass in small pieces: frozen replicas thaw, and the platform delivers again what was not accepted. */
  private async pass(leases: number): Promise<void> {
    const end = this.bed.clock.monotonic() + leases * this.bed.leaseMs
    while (this.bed.clock.monotonic() < end) {
      const piece = Math.min(0.25, (end - this.bed.clock.monotonic()) / this.bed.leaseMs)
      await this.bed.pass(Math.max(piece, 0.001))
      const now = this.bed.clock.monotonic()
      for (const [replica, until] of this.frozen) {
        if (until > now) continue
        this.note(`${replica.name} thaws`)
        this.frozen.delete(replica)
        replica.thaw()
      }
      await this.keepOneUp()
      for (const delivery of this.deliveries) {
        const late = delivery.state === 'open' && now - delivery.sinceMs > this.bed.leaseMs
        if (late || delivery.state === 'refused') this.deliver(delivery, this.random.pick(this.running()))
      }
    }
  }

  /** As whoever operates it would. */
  private async keepOneUp(): Promise<void> {
    while (this.running().length === 0) await this.start(true)
  }

  private running(): Replica[] {
    return [...this.up].filter((replica) => !this.frozen.has(replica) && replica.faults.alive)
  }

  /** One that may go: another one runs. */
  private spare(): Replica | null {
    const running = this.running()
    return running.length < 2 ? null : this.random.pick(running)
  }

  private note(what: string): void {
    this.story.push(`${(this.bed.clock.monotonic() / 1000).toFixed(2)} s  ${what}`)
  }
}

function keyOf(chatId: string): string {
  return `fake%3Atest/${chatId}`
}
