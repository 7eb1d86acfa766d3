/** A Redis Cluster and a Sentinel set, for tests that are the same on both. */
import { Redis } from 'ioredis'
import { startRedisCluster, startRedisSentinels, waitFor } from '../../support/index.js'

/** An election that ends without a winner is held again, by Sentinels after twice their failover-timeout of 4 s. */
const ELECTION_MS = 30_000

interface Primary {
  kill(): Promise<void>
  pause(): void
  resume(): void
  restart(): Promise<void>
  /** Resolves when the other servers have another one in its place; they are asked for at most a second at a time. */
  replaced(): Promise<void>
  /** Resolves when a replica has what was written so far: what comes later may be lost with it. */
  copied(): Promise<void>
}

export interface Stage {
  /** Options of a store that lies here. */
  place: object
  /** A server that serves chats at present. */
  primary: () => Promise<Primary>
  /** Resolves when every server knows its part. */
  whole: () => Promise<void>
}

async function replaced(index: number, now: () => Promise<number>): Promise<void> {
  const another = async (): Promise<boolean> => ![index, -1].includes(await now())
  await waitFor(another, { what: 'another primary is elected', timeoutMs: ELECTION_MS })
}

async function copied(port: number): Promise<void> {
  const client = new Redis(port)
  try {
    for (let n = 0; ; n += 1) {
      // A name that is in one of this server's slots.
      const done = await client.set(`copied:${n}`, '1').catch((error: unknown) => {
        if (!String(error).includes('MOVED')) throw error
      })
      if (done === 'OK') break
    }
    if ((await client.wait(1, 5000)) < 1) throw new Error('No replica follows.')
  } finally {
    client.disconnect()
  }
}

export async function clusterStage(): Promise<Stage> {
  const cluster = await startRedisCluster()
  return {
    // One that answers is enough, and the first one is killed.
    place: { cluster: cluster.addresses },
    whole: cluster.whole,
    async primary() {
      const index = await cluster.ownerOf(0)
      const server = () => cluster.nodes[index]?.server
      return {
        copied: () => copied(server()?.port ?? 0),
        kill: async () => server()?.kill(),
        pause: () => server()?.signal('SIGSTOP'),
        resume: () => server()?.signal('SIGCONT'),
        restart: () => cluster.restart(index),
        replaced: () => replaced(index, () => cluster.ownerOf(0)),
      }
    },
  }
}

export async function sentinelStage(): Promise<Stage> {
  const set = await startRedisSentinels()
  return {
    place: { sentinels: set.sentinels, name: set.name },
    whole: set.whole,
    async primary() {
      const index = await set.primary()
      return {
        copied: () => copied(set.servers[index]?.port ?? 0),
        kill: async () => set.servers[index]?.kill(),
        pause: () => set.servers[index]?.signal('SIGSTOP'),
        resume: () => set.servers[index]?.signal('SIGCONT'),
        restart: () => set.restart(index),
        replaced: () => replaced(index, set.primary),
      }
    },
  }
}

export const stages = [
  { name: 'Redis Cluster of three masters with replicas', stage: clusterStage },
  { name: 'Sentinel set of a primary, a replica and three Sentinels', stage: sentinelStage },
]
