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

/** @param index of the primary; what has none must not pass for one whose loss does nothing */
function known<T>(servers: readonly T[], index: number): T {
  const server = servers[index]
  if (server === undefined) throw new Error('No server says who the primary is.')
  return server
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
      // Another one after a restart.
      const server = () => known(cluster.nodes, index).server
      return {
        copied: () => copied(server().port),
        kill: async () => server().kill(),
        pause: () => server().signal('SIGSTOP'),
        resume: () => server().signal('SIGCONT'),
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
      const server = () => known(set.servers, index)
      return {
        copied: () => copied(server().port),
        kill: async () => server().kill(),
        pause: () => server().signal('SIGSTOP'),
        resume: () => server().signal('SIGCONT'),
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
