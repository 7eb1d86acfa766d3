/** Options that say which Redis and where in it; secrets never come into a message. */
import type { ConnectionOptions } from 'node:tls'
import { Redis, type Cluster, type RedisOptions as ClientOptions } from 'ioredis'
import { ConfigError, requireOneOf, requireText } from '@botmesh/core'
import { clusterRefusal, notACluster } from './layout-errors.js'
import type { PlaceSettings } from './layout.js'
import type { Layout } from './mesh.js'
import {
  addressName,
  clientTarget,
  clusterTarget,
  settingsTarget,
  urlTarget,
  type ClusterTarget,
  type ServerAddress,
  type Target,
} from './redis-target.js'

/** Where the data is: one of `url`, `client`, `cluster` and `sentinels`. */
export interface RedisOptions {
  /** `redis://[user:password@]host[:port][/db]`, or `rediss://` for TLS. With layout `'cluster'` it may name several
   * nodes: `redis://host:port,host:port`. */
  url?: string | undefined
  /** An ioredis client (`Redis` or `Cluster`) whose settings are used on connections of our own. */
  client?: Redis | Cluster
  /** Nodes of a Redis Cluster: one that answers is enough. Implies layout `'cluster'`. */
  cluster?: readonly Partial<ServerAddress>[]
  /** Sentinels that say which server is the primary of `name`. */
  sentinels?: readonly Partial<ServerAddress>[]
  /** Name of the primary that the Sentinels watch. */
  name?: string
  /** With `cluster` and `sentinels`: credentials of the servers. */
  username?: string
  password?: string
  /** With `sentinels`: credentials of the Sentinels themselves. */
  sentinelUsername?: string
  sentinelPassword?: string
  /** With `sentinels`: database number. */
  db?: number
  /** With `cluster` and `sentinels`: TLS to the servers, with these settings. */
  tls?: ConnectionOptions
  /** With `sentinels`: TLS to the Sentinels, with these settings. */
  sentinelTLS?: ConnectionOptions
  /** With `cluster` and `sentinels`: how `host:port`, as the servers name each other, is reached from here. */
  natMap?: Readonly<Record<string, ServerAddress>>
  /** Two prefixes never see each other (C4). Any text: keys have it percent-encoded, so that braces in it make no hash
   * tag. Default `botmesh`. */
  prefix?: string
  /** How keys are laid out. `'single'` (default): one server, standalone or behind Sentinel. `'cluster'`: a Redis
   * Cluster. */
  layout?: 'single' | 'cluster'
  /** With layout `'cluster'`: over how many shards chats are spread. Default 16; at least as many as there are masters,
   * and never changed for a prefix. */
  shards?: number
}

export const PLACE_OPTIONS = [
  ...['url', 'client', 'cluster', 'sentinels', 'name', 'username', 'password', 'sentinelUsername'],
  ...['sentinelPassword', 'db', 'tls', 'sentinelTLS', 'natMap', 'prefix', 'layout', 'shards'],
] as const

const URL_FORM = 'redis://[user:password@]host[:port][/db], or rediss:// for TLS'
const DEFAULT_SHARDS = 16
const MOST_SHARDS = 1024
const WAYS = ['url', 'client', 'cluster', 'sentinels'] as const

/** @throws ConfigError unless exactly one of the ways is there, is usable and goes with the layout. */
export function readPlace(owner: string, options: RedisOptions, windowMs: number): PlaceSettings {
  const given = WAYS.filter((way) => options[way] !== undefined)
  if (given.length > 1) {
    throw new ConfigError(
      `${owner} takes only one of "url", "client", "cluster" and "sentinels", not both ${given.map((one) => `"${one}"`).join(' and ')}.`,
      {
        option: given[1] ?? 'client',
        accepted: 'one of them',
      },
    )
  }
  const layout = readLayout(options)
  const target = readTarget(owner, options, layout.layout)
  refuseStray(options, given[0])
  return { target, prefix: requireText('prefix', options.prefix ?? 'botmesh'), windowMs, ...layout }
}

/** Settings that would have no effect are mistakes. */
function refuseStray(options: RedisOptions, way: (typeof WAYS)[number] | undefined): void {
  const goesWith = {
    name: ['sentinels'],
    username: ['sentinels', 'cluster'],
    password: ['sentinels', 'cluster'],
    sentinelUsername: ['sentinels'],
    sentinelPassword: ['sentinels'],
    db: ['sentinels'],
    tls: ['sentinels', 'cluster'],
    sentinelTLS: ['sentinels'],
    natMap: ['sentinels', 'cluster'],
  } as const
  for (const [option, ways] of Object.entries(goesWith)) {
    if (options[option as keyof typeof goesWith] === undefined) continue
    if ((ways as readonly string[]).includes(way ?? '')) continue
    const with_ = ways.map((one) => `"${one}"`).join(' or ')
    throw new ConfigError(
      `Option "${option}" goes with ${with_} only; put it into the url, or into the client's settings.`,
      { option, accepted: `together with ${with_}` },
    )
  }
}

function readLayout({ layout: given, cluster, shards }: RedisOptions): Layout {
  const layout = requireOneOf('layout', given ?? (cluster ? 'cluster' : 'single'), ['single', 'cluster'])
  if (layout === 'single') {
    if (cluster) throw clusterRefusal()
    if (shards !== undefined) {
      throw new ConfigError('Option "shards" goes with layout \'cluster\' only.', {
        option: 'shards',
        value: shards,
        accepted: "together with layout 'cluster'",
      })
    }
    return { layout, shards: 1 }
  }
  const count: unknown = shards ?? DEFAULT_SHARDS
  if (typeof count !== 'number' || !Number.isSafeInteger(count) || count < 1 || count > MOST_SHARDS) {
    const accepted = `a whole number from 1 to ${MOST_SHARDS}`
    throw new ConfigError(`Option "shards" is ${String(count)}; accepted: ${accepted}.`, {
      option: 'shards',
      value: count,
      accepted,
    })
  }
  return { layout, shards: count }
}

function readTarget(owner: string, options: RedisOptions, layout: Layout['layout']): Target {
  const { url, client, cluster, sentinels } = options
  if (client !== undefined) return readClient(client, layout)
  if (cluster !== undefined) return clusterOf(readServers('cluster', cluster, 6379), options)
  if (sentinels !== undefined) return readSentinels(options, layout)
  if (url === undefined || url === '') {
    throw new ConfigError(
      `Option "url" of ${owner} is ${url === '' ? 'empty' : 'undefined'}; accepted: ${URL_FORM} (is the environment variable set?), or "client", "cluster", "sentinels".`,
      { option: 'url', accepted: URL_FORM },
    )
  }
  return readUrl(url, layout)
}

function readUrl(url: unknown, layout: Layout['layout']): Target {
  if (typeof url !== 'string') throw badUrl('is not a text')
  const [, head = '', hosts = '', tail = ''] = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/is.exec(url) ?? []
  const urls = hosts.split(',').map((host) => head + host.trim() + tail)
  if (urls.length > 1) for (const one of urls) checkUrl(one)
  else checkUrl(url)
  if (layout === 'single') {
    if (urls.length > 1) throw badUrl("names several nodes, which is for layout 'cluster'")
    return urlTarget(url)
  }
  const [first = url] = urls
  if (Number(new URL(first).pathname.replace('/', '')) > 0) {
    throw badUrl('names a database; a Redis Cluster has only number 0')
  }
  const seeds = urls.map((one) => ({
    host: bare(new URL(one).hostname),
    port: Number(new URL(one).port || 6379),
  }))
  return clusterTarget(seeds, (server, own) => {
    const at = new URL(first)
    at.host = addressName(server)
    return new Redis(at.href, own)
  })
}

function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}

function checkUrl(url: string): void {
  if (!URL.canParse(url))
    throw badUrl('cannot be read as a URL (are special characters of the password percent-encoded?)')
  const { protocol, hostname, pathname, username, password } = new URL(url)
  if (protocol !== 'redis:' && protocol !== 'rediss:') throw badUrl(`begins with "${protocol}"`)
  if (hostname === '') throw badUrl('names no host')
  if (!/^\/?\d*$/.test(pathname)) {
    throw badUrl(
      'names a database that is not a number (are special characters of the password percent-encoded?)',
    )
  }
  try {
    decodeURIComponent(username + password)
  } catch {
    throw badUrl('has credentials with a "%" that is not percent-encoded (as "%25")')
  }
}

/** Never with the URL itself: it may carry a password. */
function badUrl(why: string): ConfigError {
  return new ConfigError(`Option "url" ${why}; accepted: ${URL_FORM}.`, { option: 'url', accepted: URL_FORM })
}

function readClient(client: unknown, layout: Layout['layout']): Target {
  const accepted = 'a client made with `new Redis(…)` or `new Cluster(…)` of ioredis'
  if (typeof client !== 'object' || client === null || !('duplicate' in client) || !('options' in client)) {
    throw new ConfigError(`Option "client" is not an ioredis client; accepted: ${accepted}.`, {
      option: 'client',
      accepted,
    })
  }
  if ('isCluster' in client && client.isCluster === true) {
    if (layout === 'single') throw clusterRefusal()
    return targetOfCluster(client as unknown as Cluster)
  }
  const redis = client as unknown as Redis
  if (layout === 'single') return clientTarget(redis)
  const { host = 'localhost', port = 6379, sentinels, path } = redis.options
  if (sentinels || path) throw notACluster(path ?? 'Sentinels')
  return clusterTarget([{ host, port }], (server, own) => redis.duplicate({ ...own, ...server }))
}

/** A cluster client's nodes and settings; it is not used itself. */
function targetOfCluster(client: Cluster): ClusterTarget {
  // Not part of its types: what it was made with.
  const { startupNodes } = client as unknown as { startupNodes: unknown[] }
  const { redisOptions = {}, natMap } = client.options
  const reach = typeof natMap === 'function' ? natMap : (name: string) => natMap?.[name]
  return clusterTarget(
    startupNodes.map(seedAddress),
    (server, own) => new Redis({ ...redisOptions, ...own, ...server }),
    (server) => reach(`${server.host}:${server.port}`) ?? server,
  )
}

function seedAddress(server: unknown): ServerAddress {
  if (typeof server === 'number') return { host: '127.0.0.1', port: server }
  if (typeof server === 'string') {
    const url = new URL(server.includes('://') ? server : `redis://${server}`)
    return { host: bare(url.hostname), port: Number(url.port || 6379) }
  }
  const { host, port } = server as Partial<Record<keyof ServerAddress, string | number>>
  return { host: String(host ?? '127.0.0.1'), port: Number(port ?? 6379) }
}

function clusterOf(seeds: readonly ServerAddress[], options: RedisOptions): ClusterTarget {
  const { natMap } = options
  return clusterTarget(
    seeds,
    (server, own) => new Redis({ ...credentialsOf(options), ...own, ...server }),
    (server) => natMap?.[`${server.host}:${server.port}`] ?? server,
  )
}

function credentialsOf({ username, password, tls }: RedisOptions): ClientOptions {
  return {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { tls }),
  }
}

function readSentinels(options: RedisOptions, layout: Layout['layout']): Target {
  const { sentinels = [], name, sentinelUsername, sentinelPassword, sentinelTLS, db, natMap, tls } = options
  if (layout === 'cluster') throw notACluster('Sentinels')
  return settingsTarget({
    sentinels: readServers('sentinels', sentinels, 26379),
    name: requireText('name', name),
    failoverDetector: true,
    ...credentialsOf(options),
    ...(tls === undefined ? {} : { enableTLSForSentinelMode: true }),
    ...(sentinelUsername === undefined ? {} : { sentinelUsername }),
    ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
    ...(sentinelTLS === undefined ? {} : { sentinelTLS }),
    ...(db === undefined ? {} : { db }),
    ...(natMap === undefined ? {} : { natMap: { ...natMap } }),
  })
}

function readServers(option: 'cluster' | 'sentinels', nodes: unknown, defaultPort: number): ServerAddress[] {
  const accepted = "a list such as [{ host: '10.0.0.1', port: " + defaultPort + ' }], not empty'
  const bad = (): ConfigError =>
    new ConfigError(`Option "${option}" is not a list of nodes; accepted: ${accepted}.`, { option, accepted })
  if (!Array.isArray(nodes) || nodes.length === 0) throw bad()
  return nodes.map((server: unknown) => {
    if (typeof server !== 'object' || server === null) throw bad()
    const { host = 'localhost', port = defaultPort } = server as { host?: unknown; port?: unknown }
    if (typeof host !== 'string' || host === '' || typeof port !== 'number') throw bad()
    return { host, port }
  })
}

/** Names the place of the data: two objects with one place see the same keys. */
export function identityOf({ target, prefix, windowMs, shards }: PlaceSettings): string {
  return `${target.identity} ${windowMs} ${shards} ${prefix}`
}
