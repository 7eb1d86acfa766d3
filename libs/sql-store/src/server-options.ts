/** What the options of stores on a server have in common: an address or a given pool, and how long a call may take. */
import {
  ConfigError,
  describeValue,
  parseDuration,
  refuseUnknownOptions,
  systemClock,
  type Clock,
  type Duration,
} from '@botmesh/core'
import { SQL_STORE_OPTIONS, type SqlStoreOptions } from './sql-store.js'

/** `Pool`: what the driver makes, in any of its forms. */
export interface ServerOptions<Pool> extends SqlStoreOptions {
  /** `<protocol>://[user:password@]host[:port]/database`. */
  url?: string | undefined
  /** A pool of the driver, shared with the application: it is not closed, and keeps its own settings. */
  pool?: Pool
  /** Most connections at a time, with `url`. Default 10. */
  connections?: number
  /** How long a statement may take before its connection is given up and the call rejects. Default 10 s. */
  callTimeoutMs?: Duration
}

/** What differs between the servers. */
export interface ServerForm<Pool, Raw> {
  /** The class, as messages name it. */
  store: string
  urlForm: string
  protocols: RegExp
  defaultPort: number
  /** The URL has to name a database. */
  needsDatabase: boolean
  /** The driver, and how one of its pools is made, as messages name them. */
  driver: string
  poolForm: string
  /** @returns null for what is no pool of the driver. */
  readPool(pool: Pool): Raw | null
}

export interface ServerTarget<Raw> {
  /** `host:port/database`, without user and password. */
  place: string
  clock: Clock
  timeoutMs: number
  /** A pool that was given, or what our own ones are made of. */
  from: { pool: Raw } | { url: string; connections: number }
}

const OPTIONS = ['url', 'pool', 'connections', 'callTimeoutMs', ...SQL_STORE_OPTIONS] as const

/** How long making a connection may take. */
export const CONNECT_TIMEOUT_MS = 10_000

/** @throws ConfigError for an option that is unknown, missing (`url`) or impossible. It never shows the URL itself. */
export function readServerOptions<Pool, Raw>(
  options: ServerOptions<Pool>,
  form: ServerForm<Pool, Raw>,
): ServerTarget<Raw> {
  refuseUnknownOptions(form.store, options, OPTIONS)
  const { url, pool, connections = 10, clock = systemClock } = options
  const timeoutMs = parseDuration('callTimeoutMs', options.callTimeoutMs ?? '10s', { minMs: 100 })
  const call = { clock, timeoutMs }
  if (pool !== undefined) {
    return { ...call, place: 'the given pool', from: { pool: readPool(pool, url, form) } }
  }
  const { hostname, port, pathname } = readUrl(url, form)
  if (!Number.isInteger(connections) || connections < 2 || connections > 1000) {
    const accepted = 'a whole number from 2 to 1000'
    throw new ConfigError(`Option "connections" is ${describeValue(connections)}; accepted: ${accepted}.`, {
      option: 'connections',
      value: connections,
      accepted,
    })
  }
  const place = `${hostname || 'localhost'}:${port || form.defaultPort}${pathname}`
  return { ...call, place, from: { url: String(url), connections } }
}

function readPool<Pool, Raw>(pool: Pool, url: unknown, form: ServerForm<Pool, Raw>): Raw {
  const { store, driver, poolForm: accepted } = form
  if (url !== undefined) {
    throw new ConfigError(`${store} takes either "url" or "pool", not both.`, {
      option: 'pool',
      accepted: 'one of the two',
    })
  }
  const raw = typeof pool === 'object' && pool !== null ? form.readPool(pool) : null
  if (raw !== null) return raw
  throw new ConfigError(`Option "pool" is not a pool of ${driver}; accepted: ${accepted}.`, {
    option: 'pool',
    accepted,
  })
}

function readUrl<Pool, Raw>(url: unknown, form: ServerForm<Pool, Raw>): URL {
  const { store, urlForm: accepted, protocols, needsDatabase } = form
  const bad = (why: string): ConfigError =>
    new ConfigError(
      `Option "url" of ${store} ${why}; accepted: ${accepted} (is the environment variable set?), or "pool".`,
      { option: 'url', accepted },
    )
  if (url === undefined || url === '') throw bad(url === '' ? 'is empty' : 'is undefined')
  if (typeof url !== 'string' || !URL.canParse(url)) throw bad('cannot be read as a URL')
  const parsed = new URL(url)
  if (!protocols.test(parsed.protocol)) throw bad(`begins with "${parsed.protocol}//"`)
  if (needsDatabase && parsed.pathname.length < 2) throw bad('names no database')
  return parsed
}
