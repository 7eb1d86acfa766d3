/** Redis as a place for hand-overs: a store and a coordinator for each replica, on connections of its own, in real time. */
import { Redis } from 'ioredis'
import { systemClock, type CoordinatorOptions } from '@botmesh/core'
import { FakePlatform, type CallFaults, type PausableClock } from '@botmesh/core/testing'
import { RedisStore } from '@botmesh/redis-store'
import type { BadInputBed, Plantable } from './bad-input.js'
import type { Replica, ReplicaOptions, Stored } from './bed.js'
import { InProcessReplica, type Connection, type ReplicaHost } from './in-process-replica.js'
import { startInTurn } from './starts.js'

const LEASE_MS = 2_000
const LOOK_MS = 10

type Wrap = NonNullable<CoordinatorOptions['wrap']>

export class RedisBed implements BadInputBed, ReplicaHost {
  readonly clock = systemClock
  readonly platform = new FakePlatform()
  private readonly replicas: InProcessReplica[] = []
  begunAt: number | undefined
  private readonly admin: Redis
  readonly store: RedisStore

  /** @param prefix of its own for each bed. @param leaseMs at least 1,000; all times go by it. */
  constructor(
    private readonly url: string,
    private readonly prefix: string,
    readonly leaseMs = LEASE_MS,
  ) {
    this.admin = new Redis(url)
    this.store = new RedisStore({ url, prefix })
  }

  async replica(name: string, options: ReplicaOptions): Promise<Replica> {
    const replica = new InProcessReplica(this, name, options)
    this.replicas.push(replica)
    await startInTurn(replica)
    this.begunAt = systemClock.monotonic()
    return replica
  }

  pass(leases: number): Promise<void> {
    return sleep(leases * this.leaseMs)
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
    const [checkpoint, marker] = await this.admin.hmget(this.key(`c:${chatKey}`), 'c', 'm')
    return typeof checkpoint === 'string' ? 'checkpoint' : typeof marker === 'string' ? 'marker' : 'none'
  }

  pending(chatKey: string): Promise<number> {
    return this.admin.llen(this.key(`jq:${chatKey}`))
  }

  async plant(chatKey: string, what: Plantable, text: string): Promise<void> {
    if (what === 'checkpoint') await this.admin.hset(this.key(`c:${chatKey}`), { c: text, r: '7:1', x: 'P' })
    else if (what === 'marker') await this.admin.hset(this.key(`c:${chatKey}`), { m: text, y: 'P' })
    else if (what === 'outbox') await this.admin.hset(this.key(`o:${chatKey}`), 'r:planted/-/0/0', text)
    else {
      const id = (await this.admin.lindex(this.key(`jq:${chatKey}`), 0)) ?? ''
      const record = (await this.admin.hget(this.key(`j:${chatKey}`), id)) ?? ''
      await this.admin.hset(this.key(`j:${chatKey}`), id, record.replace(/ .*/s, ` ${text}`))
    }
    // What the last turn left says what it knew of the row; a broken writer cares for no such thing, and time takes it.
    const windows = await this.admin.keys(this.key('t:*'))
    for (const window of windows) await this.admin.hdel(window, chatKey)
  }

  async lose(chatKey: string, id: string): Promise<void> {
    await this.admin.hdel(this.key(`j:${chatKey}`), id)
  }

  async aside(chatKey: string, what: 'checkpoint' | 'marker'): Promise<string | undefined> {
    const all = Object.entries(await this.admin.hgetall(this.key('damaged')))
    return all.find(([name]) => name.startsWith(`${what} ${chatKey} `))?.[1]
  }

  async close(): Promise<void> {
    for (const replica of this.replicas) await replica.end()
    await this.store.close()
    await this.admin.quit()
  }

  async run(work: Promise<unknown>): Promise<void> {
    await work
  }

  connect(faults: CallFaults, clock: PausableClock): Connection {
    const store = new RedisStore({ url: this.url, prefix: this.prefix, clock })
    const raw: Parameters<Wrap>[0][] = []
    const wrap: Wrap = (backend) => {
      raw.push(backend)
      return faults.backend(backend)
    }
    const wrapped = faults.store(store)
    const coordinator = store.coordinator({ leaseMs: this.leaseMs, clock, wrap })
    const shares = coordinator.sharesBackendWith.bind(coordinator)
    coordinator.sharesBackendWith = (other) => shares(other === wrapped ? store : other)
    const cut = async (): Promise<void> => {
      await Promise.all(raw.map((backend) => backend.close()))
      await store.close()
    }
    return { store: wrapped, coordinator, cut }
  }

  private key(name: string): string {
    return `${this.prefix}:{0}:${name}`
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void systemClock.setTimeout(resolve, ms))
}
