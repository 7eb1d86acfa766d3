/** The in-process hub and store as a place for hand-overs: turns and data together, or apart; on a manual clock. */
import { Bot, MemoryStore, type BotEvents, type Coordinator, type Store } from '@botmesh/core'
import {
  CallFaults,
  FakePlatform,
  FakeProvider,
  ManualClock,
  MemoryCoordinationHub,
  MemoryCoordinator,
  PausableClock,
} from '@botmesh/core/testing'
import { CHAT_ID, type HandoverBed, type Replica, type ReplicaOptions, type Stored } from './bed.js'

/** `shared`: turns and data in one backend, so that a commit is one step. `separate`: data in a store of its own. */
export type Placement = 'shared' | 'separate'

const LEASE_MS = 15_000
const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore }

export class MemoryBed implements HandoverBed {
  readonly leaseMs = LEASE_MS
  readonly clock = new ManualClock()
  readonly platform = new FakePlatform()
  readonly store = new MemoryStore({ clock: this.clock, maxIdleKeys: 100 })
  private readonly hub = this.makeHub()
  private readonly replicas: MemoryReplica[] = []

  /** @param options.apart every replica has turns of its own: to see what is missed then. */
  constructor(
    readonly placement: Placement,
    private readonly options: { apart?: boolean } = {},
  ) {}

  async replica(name: string, options: ReplicaOptions): Promise<Replica> {
    const replica = new MemoryReplica(this, name, options)
    this.replicas.push(replica)
    await replica.start()
    return replica
  }

  async pass(leases: number): Promise<void> {
    await this.clock.advance(leases * LEASE_MS)
  }

  later(leases: number, fn: () => void): void {
    this.clock.setTimeout(fn, leases * LEASE_MS)
  }

  get said(): string[] {
    return this.platform.sent.map((send) => send.text)
  }

  async stored(chatKey: string): Promise<Stored> {
    // Only openState tells of markers, and it would raise the store's fence.
    const { data } = this.store as unknown as Insides
    const { checkpoint, marker } = data.readState(chatKey)
    return checkpoint !== null ? 'checkpoint' : marker !== null ? 'marker' : 'none'
  }

  async plant(
    chatKey: string,
    what: 'checkpoint' | 'marker' | 'record' | 'outbox',
    text: string,
  ): Promise<void> {
    const { data } = this.store as unknown as Insides
    const row = data.row(chatKey)
    const now = this.clock.now()
    if (what === 'checkpoint') row.writeCheckpoint(text, `planted-${now}`, undefined, now)
    else if (what === 'marker') row.writeMarker(text, undefined, now)
    else if (what === 'outbox') data.outbox.chats.set(chatKey, new Map([['r:planted/-/0/0', text]]))
    else {
      const oldest = [...(data.journal.chats.get(chatKey)?.pending ?? [])][0]
      if (oldest === undefined) throw new Error('There is no record to put it in the place of.')
      oldest.json = text
    }
  }

  async aside(chatKey: string, what: 'checkpoint' | 'marker'): Promise<string | undefined> {
    const { data } = this.store as unknown as Insides
    return data.asides.get(`${what} of ${chatKey}`)
  }

  async pending(chatKey: string): Promise<number> {
    return (await this.store.journal.oldest(chatKey)) === null ? 0 : 1
  }

  async close(): Promise<void> {
    for (const replica of this.replicas) await replica.end()
  }

  /** Waits for `work` while timers fire as they fall due. */
  async run(work: Promise<unknown>): Promise<void> {
    let done = false
    work.then(
      () => (done = true),
      () => (done = true),
    )
    await this.clock.advanceUntil(() => done)
    await work
  }

  private makeHub(): MemoryCoordinationHub {
    return new MemoryCoordinationHub({ clock: this.clock, maxIdleKeys: 100 })
  }

  /** The wrapped store of one replica and a coordinator that goes with it. */
  connect(faults: CallFaults, clock: PausableClock): { store: Store; coordinator: Coordinator } {
    const options = { leaseMs: LEASE_MS, clock }
    const store = faults.store(this.store)
    if (this.placement === 'shared') return { store, coordinator: store.coordinator(options) }
    const hub = this.options.apart === true ? this.makeHub() : this.hub
    const wrap = (backend: Parameters<CallFaults['backend']>[0]) => faults.backend(backend)
    return { store, coordinator: new MemoryCoordinator({ ...options, hub, wrap }) }
  }
}

/** What a test can reach of a memory store that nobody else can. */
interface Insides {
  data: {
    row(key: string): {
      writeCheckpoint(json: string, revision: string, ttlMs: undefined, now: number): void
      writeMarker(json: string, ttlMs: undefined, now: number): void
    }
    asides: Map<string, string>
    outbox: { chats: Map<string, Map<string, string>> }
    journal: { chats: Map<string, { pending: Set<{ json: string }> }> }
    readState(key: string): StateParts
  }
}

interface StateParts {
  checkpoint: unknown
  marker: unknown
}

class MemoryReplica implements Replica {
  readonly bot: Bot
  readonly faults: CallFaults
  readonly provider: FakeProvider
  readonly errors: unknown[] = []
  readonly handovers: Replica['handovers'] = []
  readonly handled: BotEvents['message:handled'][] = []
  readonly clock: PausableClock
  private stopped = false

  constructor(
    private readonly bed: MemoryBed,
    readonly name: string,
    { define, coordination, config, faults }: ReplicaOptions,
  ) {
    this.clock = new PausableClock(bed.clock)
    this.faults = new CallFaults({ ...faults, onCrash: () => this.clock.pause() })
    this.provider = new FakeProvider({ platform: bed.platform })
    const { store, coordinator } = bed.connect(this.faults, this.clock)
    this.bot = new Bot({
      clock: this.clock,
      name,
      logger: silent,
      ...config,
      store,
      provider: this.faults.provider(this.provider),
      coordination: { coordinator, ...coordination },
    })
    this.bot.on('error', ({ error }) => this.errors.push(error))
    this.bot.on('coordination:handover', (event) => this.handovers.push(event))
    this.bot.on('message:handled', (event) => this.handled.push(event))
    define(this.bot, name)
  }

  start(): Promise<void> {
    return this.bed.run(this.bot.start())
  }

  async receive(message: Parameters<Replica['receive']>[0]): Promise<void> {
    await this.provider.receive({ chatId: CHAT_ID, ...message })
  }

  kill(): void {
    this.faults.kill()
    this.clock.pause()
  }

  freeze(): void {
    this.faults.pause()
    this.clock.pause()
  }

  thaw(): void {
    if (!this.faults.alive) return
    this.faults.resume()
    this.clock.resume()
  }

  async stop(): Promise<void> {
    this.stopped = true
    await this.bed.run(this.bot.stop())
  }

  /** The end of the scenario: what is dead stays as it is. */
  async end(): Promise<void> {
    this.thaw()
    if (!this.stopped && this.faults.alive) await this.stop()
  }
}

function ignore(): void {}
