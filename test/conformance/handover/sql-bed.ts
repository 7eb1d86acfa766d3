/** An SQL store as a place for hand-overs: data in it, turns in Redis, each replica on connections of its own, real time. */
import { systemClock, type CoordinatorOptions, type Store } from '@botmesh/core'
import { FakePlatform, PausableClock, type CallFaults } from '@botmesh/core/testing'
import { RedisCoordinator } from '@botmesh/redis-store'
import type { BadInputBed, Plantable } from './bad-input.js'
import type { Replica, ReplicaOptions, Stored } from './bed.js'
import { InProcessReplica, type Connection, type ReplicaHost } from './in-process-replica.js'
import { startInTurn } from './starts.js'

const LEASE_MS = 2_000
const LOOK_MS = 10
/**
 * In leases. The scenario's times meet each other: a replica that thawed learns at its next heartbeat what it lost and
 * tries its message again half a lease later, just when the user writes. Where turns do not know what is committed it
 * really takes a turn then, and may find the user's message first. So the user hesitates here until that is over.
 */
const SHORT = 0.5
const HESITATION = 0.6
/** Before a moment counts as reached: every send of it waits for an intent, and dozens of replicas are at work. */
const LEAD_UP = 0.1
const PATIENCE = 0.2

type Wrap = NonNullable<CoordinatorOptions['wrap']>

/** A database with tables of one prefix. */
export interface SqlPlace {
  /** Another client, as another process would have it. */
  store(clock: PausableClock): Store
  /** Beside the stores. */
  query: (statement: string) => Promise<Record<string, unknown>[]>
  /** Letters, digits and underscores. */
  readonly prefix: string
}

export class SqlBed implements BadInputBed, ReplicaHost {
  readonly clock = systemClock
  readonly platform = new FakePlatform()
  private readonly replicas: InProcessReplica[] = []
  begunAt: number | undefined
  private admin: Store | null = null

  constructor(
    private readonly redisUrl: string,
    private readonly place: SqlPlace,
    readonly leaseMs = LEASE_MS,
  ) {}

  async replica(name: string, options: ReplicaOptions): Promise<Replica> {
    const replica = new InProcessReplica(this, name, options)
    this.replicas.push(replica)
    await startInTurn(replica)
    this.begunAt = systemClock.monotonic()
    return replica
  }

  pass(leases: number): Promise<void> {
    const more = leases === SHORT ? HESITATION : leases === LEAD_UP ? PATIENCE : 0
    return sleep((leases + more) * this.leaseMs)
  }

  async until(condition: () => boolean, leases: number): Promise<void> {
    const end = systemClock.monotonic() + leases * this.leaseMs
    while (!condition() && systemClock.monotonic() < end) await sleep(LOOK_MS)
  }

  later(leases: number, fn: () => void): void {
    systemClock.setTimeout(fn, leases * this.leaseMs, { background: true })
  }

  get said(): string[] {
    return this.platform.sent.map((send) => send.text)
  }

  async stored(chatKey: string): Promise<Stored> {
    const { prefix } = this.place
    const [row] = await this.place.query(
      `select checkpoint, marker from ${prefix}_chats where k = '${chatKey}'`,
    )
    return typeof row?.['checkpoint'] === 'string'
      ? 'checkpoint'
      : typeof row?.['marker'] === 'string'
        ? 'marker'
        : 'none'
  }

  async pending(chatKey: string): Promise<number> {
    const { prefix } = this.place
    const [row] = await this.place.query(
      `select count(*) as n from ${prefix}_journal where chat = '${chatKey}' and status = 0`,
    )
    return Number(row?.['n'])
  }

  get store(): Store {
    this.admin ??= this.place.store(new PausableClock(systemClock))
    return this.admin
  }

  async plant(chatKey: string, what: Plantable, text: string): Promise<void> {
    const { prefix, query } = this.place
    const value = `'${text.replaceAll("'", "''")}'`
    if (what === 'record') {
      const oldest = `select min(seq) as seq from ${prefix}_journal where chat = '${chatKey}' and status = 0`
      const [row] = await query(oldest)
      await query(`update ${prefix}_journal set message = ${value} where seq = ${String(row?.['seq'])}`)
      return
    }
    if (what === 'outbox') {
      const columns = 'chat, name, hash, content, status'
      const values = `'${chatKey}', 'r:planted/-/0/0', 'h', ${value}, 'intended'`
      await query(`insert into ${prefix}_outbox (${columns}) values (${values})`)
      return
    }
    // A row of the chat, as any message leaves it.
    await this.store.arrive?.(chatKey, { messageId: 'before', timestamp: 1 })
    const revision = what === 'checkpoint' ? ", revision = '7:1'" : ''
    await query(`update ${prefix}_chats set ${what} = ${value}${revision} where k = '${chatKey}'`)
  }

  async aside(chatKey: string, what: 'checkpoint' | 'marker'): Promise<string | undefined> {
    const { prefix, query } = this.place
    const [row] = await query(
      `select value from ${prefix}_damaged where what = '${what}' and name = '${chatKey}'`,
    )
    return typeof row?.['value'] === 'string' ? row['value'] : undefined
  }

  async close(): Promise<void> {
    for (const replica of this.replicas) await replica.end()
    await this.admin?.close?.()
  }

  async run(work: Promise<unknown>): Promise<void> {
    await work
  }

  connect(faults: CallFaults, clock: PausableClock): Connection {
    const store = this.place.store(clock)
    const raw: Parameters<Wrap>[0][] = []
    const wrap: Wrap = (backend) => {
      raw.push(backend)
      return faults.backend(backend)
    }
    const { prefix } = this.place
    const coordinator = new RedisCoordinator({
      ...{ url: this.redisUrl, prefix, leaseMs: this.leaseMs, clock, wrap },
    })
    const cut = async (): Promise<void> => {
      await Promise.all(raw.map((backend) => backend.close()))
      await store.close?.()
    }
    return { store: faults.store(store), coordinator, cut }
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void systemClock.setTimeout(resolve, ms))
}
