/** The suites of the store and the coordinator on a real Redis Cluster of three masters with a replica each (S3). */
import { randomUUID } from 'node:crypto'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { coordinatorSuite, storeSuite } from '@botmesh/core/testing'
import { Cluster, Redis } from 'ioredis'
import { ConfigError, CoordinationUnavailableError, type Turn } from '@botmesh/core'
import {
  onTestEnd,
  startRedis,
  startRedisCluster,
  waitFor,
  type PrivateCluster,
} from '../../../test/support/index.js'
import { RedisCoordinator, RedisStore, type RedisOptions } from '../src/index.js'
import { slotOf } from '../src/cluster-slots.js'
import {
  NEVER_LAPSING_LEASE_MS,
  SEVERAL_SERVERS_LEASE_MS,
  STORE_GUARANTEES,
  coordinationBed,
  storeBed,
  type Ground,
} from './beds.js'
import { recordingLogger, shown } from './recording-logger.js'

let cluster: PrivateCluster
let admin: Cluster
const place: RedisOptions = { layout: 'cluster' }
const ground: Ground = {
  place,
  wipe: async () => {
    await Promise.all(admin.nodes('master').map((node) => node.flushall()))
  },
}
beforeAll(async () => {
  cluster = await startRedisCluster()
  place.cluster = cluster.addresses
  admin = new Cluster(cluster.addresses)
  admin.on('error', () => undefined)
  onTestEnd(() => admin.disconnect())
}, 60_000)

coordinatorSuite(
  { describe, it, expect },
  {
    name: 'RedisCoordinator on a cluster',
    guarantees: { commits: true, pushes: true },
    bed: async () => coordinationBed(ground, { leaseMs: SEVERAL_SERVERS_LEASE_MS }),
    rounds: 40,
  },
)

storeSuite(
  { describe, it, expect },
  {
    name: 'RedisStore on a cluster',
    guarantees: STORE_GUARANTEES,
    bed: async () => storeBed(place),
  },
)

const fresh = (): string => `cluster:${randomUUID()}`

async function take(coordinator: RedisCoordinator, key: string): Promise<Turn> {
  const turn = await coordinator.turns.take(key, { waitMs: '10s' })
  if (turn === 'duplicate') throw new Error('duplicate')
  return turn
}

async function rejection(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise
  } catch (error) {
    if (error instanceof Error) return error
  }
  throw new Error('It resolved.')
}

async function using<T extends { stop?(): Promise<void>; close?(): Promise<void> }>(
  one: T,
  use: (one: T) => Promise<void>,
): Promise<void> {
  try {
    await use(one)
  } finally {
    await (one.stop?.() ?? one.close?.())
  }
}

describe('S3, Z11: which layout goes with which server', () => {
  const node = (): string => `redis://127.0.0.1:${cluster.addresses[0]?.port}`

  it('the default layout against a cluster fails at start, whoever says that it is one', async () => {
    const openings = [new RedisCoordinator({ url: node() }).start(), new RedisStore({ url: node() }).open()]
    for (const error of await Promise.all(openings.map(rejection))) {
      expect(error).toBeInstanceOf(ConfigError)
      expect(error.message).toMatch(/Redis Cluster.*layout: 'cluster'/)
    }
    expect(() => new RedisStore({ client: admin })).toThrow(/Redis Cluster.*layout: 'cluster'/)
    expect(() => new RedisStore({ cluster: cluster.addresses, layout: 'single' })).toThrow(/Redis Cluster/)
  })

  it.each<[string, () => RedisOptions]>([
    ['nodes', () => ({ cluster: cluster.addresses.slice(2, 3) })],
    ['the url of one node', () => ({ url: node(), layout: 'cluster' })],
    [
      'a url of several nodes, the first of which is gone',
      () => ({ url: `redis://127.0.0.1:1,127.0.0.1:${cluster.addresses[4]?.port}`, layout: 'cluster' }),
    ],
    ['a client of the cluster', () => ({ client: admin, layout: 'cluster' })],
    ['a client of one node', () => ({ client: new Redis(node(), { lazyConnect: true }), layout: 'cluster' })],
  ])('C2: %s will do', async (_, options) => {
    const prefix = fresh()
    await using(new RedisStore({ ...options(), prefix }), async (store) => {
      await using(store.coordinator({ leaseMs: NEVER_LAPSING_LEASE_MS }), async (coordinator) => {
        expect(coordinator.sharesBackendWith(store)).toBe(true)
        for (const key of ['a', 'b', 'c', 'd']) {
          const turn = await take(coordinator, key)
          await turn.commit({ inboundId: 'm' })
          expect(await store.isCommitted(key, 'm')).toBe(true)
        }
      })
    })
  })

  it('S3: nodes that were reset, and know of no slots, do not hide those that do', async () => {
    const empty = await startRedis({ args: ['--cluster-enabled', 'yes'] })
    const blank = ['127.0.0.1', 'localhost'].map((host) => ({ host, port: empty.port }))
    const [known] = cluster.addresses
    const options = { cluster: [...blank, ...(known ? [known] : [])], prefix: fresh(), startTimeoutMs: 5000 }
    await using(new RedisStore(options), (store) => store.touchChat('k', 'm', 1))
    const error = await rejection(new RedisStore({ cluster: blank, startTimeoutMs: 1500 }).open())
    expect(shown(error)).toMatch(/no slots/)
  })

  it('another number of shards is refused, also when nobody lives: what is stored would not be found', async () => {
    const prefix = fresh()
    await using(new RedisStore({ ...place, prefix, shards: 4 }), (store) => store.touchChat('k', 'm', 1))
    const coordinator = new RedisCoordinator({ ...place, prefix, shards: 8 })
    const error = await rejection(coordinator.start())
    expect(error).toBeInstanceOf(ConfigError)
    expect(error.message).toMatch(/"shards" is 8, but .* with 4.*Give all replicas shards: 4/)
    await coordinator.stop()
    await using(new RedisCoordinator({ ...place, prefix, shards: 4 }), (same) => same.start())
  })
})

describe('layout cluster: shards', () => {
  it.each(['', '{eu}'])('spreads chats over all masters, each shard in one slot; prefix %j', async (more) => {
    const prefix = fresh() + more
    await using(new RedisStore({ ...place, prefix }), async (store) => {
      await Promise.all(Array.from({ length: 200 }, (_, n) => store.touchChat(`chat-${n}`, 'm', 1)))
      const found = await Promise.all(
        admin.nodes('master').map((node) => node.keys(`${encodeURIComponent(prefix)}:*`)),
      )
      for (const keys of found) expect(keys.length).toBeGreaterThan(0)
      const tags = new Set(found.flat().map((key) => /\{(.*?)\}/.exec(key)?.[1]))
      // One of them is the mesh's record, which may have a tag of its own.
      expect([16, 17]).toContain(tags.size)
    })
  })

  it('T7: a user’s state comes along where chat and user are in one shard, and is asked for where not', async () => {
    const prefix = fresh()
    await using(new RedisStore({ ...place, prefix }), async (store) => {
      await using(store.coordinator({ leaseMs: NEVER_LAPSING_LEASE_MS }), async (coordinator) => {
        await Promise.all(['p/ana', 'p/eva'].map((user) => store.setUserIf(user, { name: user }, null)))
        const read = async (key: string, user: string): Promise<unknown> => {
          const turn = await coordinator.turns.take(key, { read: { user } })
          if (turn === 'duplicate') throw new Error('duplicate')
          await turn.release()
          return turn.state?.user
        }
        expect(await read('p/ana', 'p/ana')).toMatchObject({ data: { name: 'p/ana' } })
        expect(await read('p/group/ana', 'p/ana')).toMatchObject({ data: { name: 'p/ana' } })
        expect(await read('p/ana', 'p/eva')).toBeUndefined()
        expect((await store.getUser('p/eva'))?.data).toEqual({ name: 'p/eva' })
      })
    })
  })

  it('lists and wakes what is stranded in any shard, and dead letters by time', async () => {
    await using(new RedisStore({ ...place, prefix: fresh() }), async (store) => {
      const keys = Array.from({ length: 12 }, (_, n) => `chat-${n}`)
      const message = (id: string, chatId: string) => ({
        ...{
          id,
          chatId,
          from: chatId,
          type: 'text' as const,
          body: 'x',
          isGroup: false,
          timestamp: 1,
          raw: null,
        },
      })
      for (const key of keys) await store.journal.record(key, message(`m-${key}`, key))
      expect((await store.journal.stranded(0, 100)).toSorted()).toEqual(keys.toSorted())
      expect(await store.journal.stranded(0, 5)).toHaveLength(5)
      for (const key of keys) await store.journal.fail(key, `m-${key}`, 1, 'broken', null)
      const letters = await store.journal.deadLetters(100)
      expect(letters.map(({ key }) => key).toSorted()).toEqual(keys.toSorted())
      const times = letters.map(({ at }) => at)
      expect(times).toEqual(times.toSorted((one, other) => one - other))
      expect(await store.journal.deadLetters(3)).toHaveLength(3)
      expect(await store.journal.retry('chat-7', 'm-chat-7')).toBe(true)
      expect(await store.journal.stranded(0, 100)).toEqual(['chat-7'])
    })
  })

  it('leaves no connection behind', async () => {
    const own = async (): Promise<number> => {
      const lists = await Promise.all(admin.nodes('all').map((node) => node.client('LIST')))
      return String(lists).split('name=botmesh-').length - 1
    }
    const store = new RedisStore({ ...place, prefix: fresh() })
    const coordinator = store.coordinator({ leaseMs: NEVER_LAPSING_LEASE_MS })
    const end = await store.log.subscribe('room', () => undefined)
    for (let n = 0; n < 60; n += 1) await (await take(coordinator, `chat-${n}`)).release()
    // Three a coordinator and one a store with each master, one for the log.
    expect(await own()).toBeGreaterThanOrEqual(3 * 3 + 1)
    expect(await own()).toBeLessThanOrEqual(3 * 3 + 3 + 1)
    await end()
    await coordinator.stop()
    await store.close()
    const limit = performance.now() + 5000
    while ((await own()) > 0 && performance.now() < limit)
      await new Promise((resolve) => setTimeout(resolve, 10))
    expect(await own()).toBe(0)
  })
})

describe('nodes that accept connections and say nothing', () => {
  /** How many it is connected with. */
  async function silent(): Promise<{ port: number; connected: () => number }> {
    const sockets = new Set<Socket>()
    const server = createServer((socket) => {
      sockets.add(socket.resume())
      socket.on('error', () => undefined)
      socket.on('close', () => sockets.delete(socket))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestEnd(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    return { port: (server.address() as AddressInfo).port, connected: () => sockets.size }
  }

  it('one that is asked beside others is let go once one of those has answered', async () => {
    const { port, connected } = await silent()
    const known = cluster.addresses.slice(0, 1)
    const store = new RedisStore({ cluster: [{ host: '127.0.0.1', port }, ...known], prefix: fresh() })
    await using(store, (opened) => opened.touchChat('k', 'm', 1))
    await waitFor(() => connected() === 0, { what: 'no connection', timeoutMs: 1200 })
  })

  it('who stops while they are asked waits for nothing, and leaves nothing behind', async () => {
    const { port, connected } = await silent()
    const coordinator = new RedisCoordinator({ cluster: [{ host: '127.0.0.1', port }], prefix: fresh() })
    const started = rejection(coordinator.start())
    await waitFor(() => connected() > 0, { what: 'a connection' })
    await coordinator.stop()
    expect(await started).toBeInstanceOf(CoordinationUnavailableError)
    await waitFor(() => connected() === 0, { what: 'no connection', timeoutMs: 1200 })
  })
})

describe('a cluster that moves', () => {
  /** Moves one slot with all its keys, and uses it in every state in between. */
  it('S3: a slot that moves takes its chats along: ASK and TRYAGAIN are waited out, MOVED is followed, turns are kept', async () => {
    const prefix = fresh()
    const logger = recordingLogger()
    await using(new RedisStore({ ...place, prefix, shards: 1, logger }), async (store) => {
      await using(store.coordinator({ leaseMs: 10_000 }), async (coordinator) => {
        const other = store.coordinator({ leaseMs: 10_000, processId: randomUUID() })
        const held = await take(coordinator, 'held')
        const fences: number[] = []
        const traffic = async (one: RedisCoordinator, turns: number): Promise<void> => {
          for (let left = turns; left > 0; left -= 1) {
            const turn = await take(one, 'busy')
            fences.push(turn.fence)
            await turn.release()
          }
        }
        const both = (turns: number): Promise<void[]> =>
          Promise.all([coordinator, other].map((one) => traffic(one, turns)))
        await both(5)
        const keys = await Promise.all(
          admin.nodes('master').map((node) => node.keys(`${encodeURIComponent(prefix)}:*:holders`)),
        )
        const tag = /\{(.*?)\}/.exec(keys.flat()[0] ?? '')?.[1] ?? ''
        const during = both(200)
        await moveSlot(slotOf(tag))
        await during
        await both(5)
        held.assertHeld()
        await held.commit({ inboundId: 'm1' })
        expect(await store.isCommitted('held', 'm1')).toBe(true)
        expect(fences.every((fence, n) => n === 0 || fence > (fences[n - 1] ?? 0))).toBe(true)
        await other.stop()
      })
    })
  }, 30_000)

  async function moveSlot(slot: number): Promise<void> {
    const from = await cluster.ownerOf(slot)
    const to = [0, 1, 2].find((index) => index !== from) ?? 0
    const clients = cluster.addresses.map(({ host, port }) => new Redis(port, host))
    const [source, target] = [clients[from], clients[to]]
    const ids = cluster.nodes.map(({ id }) => id)
    if (!source || !target) throw new Error('no such node')
    try {
      await target.cluster('SETSLOT', slot, 'IMPORTING', ids[from] ?? '')
      await source.cluster('SETSLOT', slot, 'MIGRATING', ids[to] ?? '')
      const { host, port } = cluster.addresses[to] ?? { host: '', port: 0 }
      for (;;) {
        const keys = await source.cluster('GETKEYSINSLOT', slot, 100)
        if (keys.length === 0) break
        await source.call('MIGRATE', host, port, '', 0, 1000, 'KEYS', ...keys)
      }
      for (const node of [target, source, ...clients]) {
        // Replicas are not asked.
        await node.cluster('SETSLOT', slot, 'NODE', ids[to] ?? '').catch(() => undefined)
      }
    } finally {
      for (const client of clients) client.disconnect()
    }
  }
})
