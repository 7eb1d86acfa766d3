/**
 * Where Redis is, and how a connection of our own to it is made. A target is one server (given by a URL, by a client's
 * settings, or found by Sentinels), or a cluster, of which each node is a server. Secrets never come into a name.
 */
import { Redis, type RedisOptions as ClientOptions } from 'ioredis'

export interface ServerAddress {
  host: string
  port: number
}

/** One server at a time. */
export interface ServerTarget {
  readonly kind: 'server'
  /** For messages: `host:port`, or what the Sentinels watch. */
  readonly name: string
  /** Two targets of one identity have the same data. */
  readonly identity: string
  /** A client that has not connected yet. `own` wins over the user's settings. */
  make(own: ClientOptions): Redis
}

export interface ClusterTarget {
  readonly kind: 'cluster'
  readonly name: string
  readonly identity: string
  /** Nodes to ask first for all others. */
  readonly seeds: readonly ServerAddress[]
  server(address: ServerAddress): ServerTarget
  /** How a node that names itself so is reached from here. */
  reach(address: ServerAddress): ServerAddress
}

export type Target = ServerTarget | ClusterTarget

/** What all our connections share, whatever the given client has. */
export function ownSettings(role: string): ClientOptions {
  return {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    enableAutoPipelining: false,
    maxRetriesPerRequest: 0,
    keyPrefix: '',
    // A connection that is closed has nothing left to say.
    disconnectTimeout: 100,
    connectionName: `botmesh-${role}`,
    // Never null: the client would end then, for good.
    sentinelRetryStrategy: () => 100,
    retryStrategy: (times) => Math.min(20 * 2 ** Math.min(times, 6), 1000),
  }
}

export function addressName({ host, port }: ServerAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** @param url checked before. */
export function urlTarget(url: string): ServerTarget {
  const { hostname, port, pathname } = new URL(url)
  const name = `${hostname}:${port || '6379'}`
  return {
    kind: 'server',
    name,
    identity: `${name}/${pathname.replace('/', '') || '0'}`,
    make: (own) => new Redis(url, own),
  }
}

/** The settings of a client, also one that finds its server through Sentinels. */
export function clientTarget(client: Redis): ServerTarget {
  const { name, identity } = namesOf(client.options)
  const detector = client.options.sentinels ? { failoverDetector: true } : {}
  return { kind: 'server', name, identity, make: (own) => client.duplicate({ ...detector, ...own }) }
}

export function settingsTarget(settings: ClientOptions): ServerTarget {
  return { kind: 'server', ...namesOf(settings), make: (own) => new Redis({ ...settings, ...own }) }
}

function namesOf(options: ClientOptions): { name: string; identity: string } {
  const { host, port, path, db, name: set, sentinels } = options
  const at = `/${db ?? 0}`
  if (sentinels) {
    const nodes = sentinels.map((one) =>
      addressName({ host: one.host ?? 'localhost', port: one.port ?? 26379 }),
    )
    return {
      name: `the primary "${set ?? ''}" of the Sentinels at ${nodes.join(', ')}`,
      identity: `sentinel:${set ?? ''}:${nodes.join(',')}${at}`,
    }
  }
  const name = path ?? addressName({ host: host ?? 'localhost', port: port ?? 6379 })
  return { name, identity: name + at }
}

/** @param connect a client for one node. */
export function clusterTarget(
  seeds: readonly ServerAddress[],
  connect: (address: ServerAddress, own: ClientOptions) => Redis,
  reach: ClusterTarget['reach'] = (address) => address,
): ClusterTarget {
  const names = seeds.map(addressName)
  return {
    kind: 'cluster',
    name: `the cluster of ${names.join(', ')}`,
    identity: `cluster:${names.toSorted().join(',')}`,
    seeds,
    reach,
    server: (address) => {
      const name = addressName(address)
      return { kind: 'server', name, identity: name, make: (own) => connect(address, own) }
    },
  }
}
