/** The in-process hub and store as a place for hand-overs: turns and data together, or apart; on a manual clock. */
import { MemoryStore } from '@botmesh/core'
import {
  type CallFaults,
  FakePlatform,
  ManualClock,
  MemoryCoordinationHub,
  MemoryCoordinator,
  type PausableClock,
} from '@botmesh/core/testing'
import type { BadInputBed, Plantable } from './bad-input.js'
import type { Replica, ReplicaOptions, Stored } from './bed.js'
import { InProcessReplica, type Connection, type ReplicaHost } from './in-process-replica.js'

/** `shared`: turns and data in one backend, so that a commit is one step. `separate`: data in a store of its own. */
export type Placement = 'shared' | 'separate'

const LEASE_MS = 15_000

export class MemoryBed implements BadInputBed, ReplicaHost {
  readonly leaseMs = LEASE_MS
  readonly clock = new ManualClock()
  readonly platform = new FakePlatform()
  readonly store = new MemoryStore({ clock: this.clock, maxIdleKeys: 100 })
  private readonly hub = this.makeHub()
  private readonly replicas: InProcessReplica[] = []

  /** @param options.apart every replica has turns of its own: to see what is missed then. */
  constructor(
    readonly placement: Placement,
    private readonly options: { apart?: boolean } = {},
  ) {}

  async replica(name: string, options: ReplicaOptions): Promise<Replica> {
    const replica = new InProcessReplica(this, name, options)
    this.replicas.push(replica)
    await replica.start()
    return replica
  }

  async until(condition: () => boolean, leases: number): Promise<void> {
    const end = this.clock.monotonic() + leases * LEASE_MS
    await this.clock.settle()
    while (!condition() && this.clock.monotonic() < end) await this.clock.advance(LEASE_MS / 100)
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

  /** The place of a message in the order in which its chat's were recorded; null if it never was. */
  arrivalOf(chatKey: string, id: string): number | null {
    const { data } = this.store as unknown as Insides
    return data.journal.chats.get(chatKey)?.rows.get(id)?.seq ?? null
  }

  async plant(chatKey: string, what: Plantable, text: string): Promise<void> {
    const { data } = this.store as unknown as Insides
    const row = data.row(chatKey)
    const now = this.clock.now()
    if (what === 'checkpoint') row.writeCheckpoint(text, { revision: `planted-${now}` }, undefined, now)
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
  connect(faults: CallFaults, clock: PausableClock): Connection {
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
      writeCheckpoint(json: string, checkpoint: { revision: string }, ttlMs: undefined, now: number): void
      writeMarker(json: string, ttlMs: undefined, now: number): void
    }
    asides: Map<string, string>
    outbox: { chats: Map<string, Map<string, string>> }
    journal: { chats: Map<string, { pending: Set<{ json: string }>; rows: Map<string, { seq: number }> }> }
    readState(key: string): StateParts
  }
}

interface StateParts {
  checkpoint: unknown
  marker: unknown
}
