/** Options that say which Redis and where in it; secrets of a URL never come into a message. */
import type { Redis } from 'ioredis'
import { ConfigError, requireOneOf, requireText } from '@botmesh/core'
import { clusterRefusal, type LinkTarget } from './redis-link.js'

/** Where the data is. */
export interface RedisOptions {
  /** `redis://[user:password@]host[:port][/db]`, or `rediss://` for TLS. */
  url?: string | undefined
  /** An ioredis client whose settings (also Sentinel, TLS, credentials) are used on connections of our own. */
  client?: Redis
  /** Two prefixes never see each other (C4). Default `botmesh`. */
  prefix?: string
  /** How keys are laid out. `'single'` (default): one server, standalone or behind Sentinel. */
  layout?: 'single' | 'cluster'
}

const URL_FORM = 'redis://[user:password@]host[:port][/db], or rediss:// for TLS'

/** @throws ConfigError unless exactly one of `url` and `client` is there and usable. */
export function readTarget(owner: string, options: RedisOptions): LinkTarget {
  const { url, client } = options
  if (client !== undefined) {
    if (url !== undefined) {
      throw new ConfigError(`${owner} takes either "url" or "client", not both.`, {
        option: 'client',
        accepted: 'one of the two',
      })
    }
    return { client: readClient(client) }
  }
  if (url === undefined || url === '') {
    throw new ConfigError(
      `Option "url" of ${owner} is ${url === '' ? 'empty' : 'undefined'}; accepted: ${URL_FORM} (is the environment variable set?), or "client".`,
      { option: 'url', accepted: URL_FORM },
    )
  }
  return { url: readUrl(url) }
}

function readUrl(url: unknown): string {
  if (typeof url !== 'string' || !URL.canParse(url)) throw badUrl('cannot be read as a URL')
  const { protocol, hostname, pathname } = new URL(url)
  if (protocol !== 'redis:' && protocol !== 'rediss:') throw badUrl(`begins with "${protocol}"`)
  if (hostname === '') throw badUrl('names no host')
  if (!/^\/?\d*$/.test(pathname)) throw badUrl('names a database that is not a number')
  return url
}

/** Never with the URL itself: it may carry a password. */
function badUrl(why: string): ConfigError {
  return new ConfigError(`Option "url" ${why}; accepted: ${URL_FORM}.`, { option: 'url', accepted: URL_FORM })
}

function readClient(client: unknown): Redis {
  const accepted = 'a client made with `new Redis(…)` of ioredis'
  if (typeof client !== 'object' || client === null || !('duplicate' in client) || !('options' in client)) {
    throw new ConfigError(`Option "client" is not an ioredis client; accepted: ${accepted}.`, {
      option: 'client',
      accepted,
    })
  }
  if ('isCluster' in client && client.isCluster === true) throw clusterRefusal()
  return client as unknown as Redis
}

export function readPrefix(prefix: unknown = 'botmesh'): string {
  return requireText('prefix', prefix)
}

/** @throws ConfigError for `'cluster'`, until it is supported. */
export function readLayout(layout: unknown = 'single'): 'single' {
  if (requireOneOf('layout', layout, ['single', 'cluster']) === 'cluster') {
    throw new ConfigError('Option "layout" is "cluster", which is not yet supported; accepted: "single".', {
      option: 'layout',
      value: layout,
      accepted: "'single'",
    })
  }
  return 'single'
}

/** Names the place of the data: two objects with one place see the same keys. */
export function identityOf(target: LinkTarget, prefix: string, windowMs: number): string {
  const where = target.client ? placeOfClient(target.client) : placeOfUrl(target.url ?? '')
  return `${where} ${windowMs} ${prefix}`
}

function placeOfUrl(url: string): string {
  const { hostname, port, pathname } = new URL(url)
  return `${hostname}:${port || '6379'}/${pathname.replace('/', '') || '0'}`
}

function placeOfClient({ options }: Redis): string {
  const { host, port, path, db, name, sentinels } = options
  if (sentinels) return `sentinel:${name ?? ''}:${JSON.stringify(sentinels)}/${db ?? 0}`
  return path ? `${path}/${db ?? 0}` : `${host ?? 'localhost'}:${port ?? 6379}/${db ?? 0}`
}
