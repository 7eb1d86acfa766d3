/** Where the data is: a client of our own by URL, or the one that was given. Errors never show the URL: it may carry a password. */
import { MongoClient, type MongoClientOptions } from 'mongodb'
import { ConfigError, describeValue, parseDuration, type Duration } from '@botmesh/core'

export interface TargetOptions {
  /** `mongodb://[user:password@]host[:port][,…]/database[?replicaSet=…]`, or `mongodb+srv://…`. */
  url?: string | undefined
  /** A client of `mongodb`, shared with the application: it is not closed, and keeps its own settings. */
  client?: MongoClient
  /** Default: the one in the URL, else `botmesh`. */
  database?: string
  /** Most connections at a time, with `url`. Default 10. */
  connections?: number
  /** How long a command may go unanswered before its connection is given up, with `url`; and how long a write waits
   * for a majority. Default 10 s. */
  callTimeoutMs?: Duration
}

export interface Target {
  /** Without user and password. */
  place: string
  database: string
  callTimeoutMs: number
  /** A client of our own for each opening, or the one that was given. */
  client(): MongoClient
  own: boolean
}

const URL_FORM = 'mongodb://[user:password@]host[:port]/database'
const DEFAULT_DATABASE = 'botmesh'
/** How long a call looks for a server to talk to. */
const LONGEST_SELECTION_MS = 5000

/** @throws ConfigError */
export function readTarget({
  url,
  client,
  database,
  connections,
  callTimeoutMs = '10s',
}: TargetOptions): Target {
  const timeoutMs = parseDuration('callTimeoutMs', callTimeoutMs, { minMs: 100 })
  if (database !== undefined) checkDatabase(database)
  if (client !== undefined) return givenTarget(client, { url, database, timeoutMs })
  const settings: MongoClientOptions = {
    appName: 'botmesh',
    maxPoolSize: readConnections(connections ?? 10),
    connectTimeoutMS: timeoutMs,
    socketTimeoutMS: timeoutMs,
    serverSelectionTimeoutMS: Math.min(timeoutMs, LONGEST_SELECTION_MS),
  }
  const text = readUrl(url)
  const probe = makeClient(text, settings)
  const name = database ?? databaseIn(text) ?? DEFAULT_DATABASE
  const hosts = probe.options.srvHost ?? probe.options.hosts.map(String).join(',')
  return {
    place: `${hosts}/${name}`,
    database: name,
    callTimeoutMs: timeoutMs,
    client: () => makeClient(text, settings),
    own: true,
  }
}

/** The application's client, with its own settings. */
function givenTarget(
  client: MongoClient,
  { url, database, timeoutMs }: { url: unknown; database: string | undefined; timeoutMs: number },
): Target {
  if (url !== undefined) {
    throw new ConfigError('MongoStore takes either "url" or "client", not both.', {
      option: 'client',
      accepted: 'one of the two',
    })
  }
  if (typeof client.db !== 'function' || typeof client.connect !== 'function') {
    const accepted = 'a client made with `new MongoClient(…)`'
    throw new ConfigError(`Option "client" is not a client of mongodb; accepted: ${accepted}.`, {
      option: 'client',
      accepted,
    })
  }
  const name = database ?? DEFAULT_DATABASE
  return {
    ...{ place: `the given client/${name}`, database: name, callTimeoutMs: timeoutMs },
    client: () => client,
    own: false,
  }
}

function makeClient(url: string, settings: MongoClientOptions): MongoClient {
  try {
    return new MongoClient(url, settings)
  } catch (error) {
    const message = error instanceof Error ? error.message : ''
    // The driver quotes the URL in its other messages.
    const [options] = /^options? [\w ,]+ (is|are) not supported/i.exec(message) ?? []
    throw badUrl(options ? `is not understood (${options})` : 'cannot be read')
  }
}

function badUrl(why: string): ConfigError {
  return new ConfigError(
    `Option "url" of MongoStore ${why}; accepted: ${URL_FORM} (is the environment variable set? Are special characters in the password percent-encoded?), or "client".`,
    { option: 'url', accepted: URL_FORM },
  )
}

function readUrl(url: unknown): string {
  if (url === undefined || url === '') throw badUrl(url === '' ? 'is empty' : 'is undefined')
  if (typeof url !== 'string') throw badUrl(`is a ${typeof url}`)
  const [scheme] = /^[a-z+]{1,20}:\/\//i.exec(url) ?? []
  if (!scheme) throw badUrl('cannot be read as a URL')
  if (!/^mongodb(\+srv)?:/.test(scheme)) throw badUrl(`begins with "${scheme}"`)
  return url
}

/** The driver would say `test` where there is none. */
function databaseIn(url: string): string | undefined {
  const [, name] = /^[^:]+:\/\/[^/?]*\/([^?]+)/.exec(url) ?? []
  return name === undefined ? undefined : decodeURIComponent(name)
}

function checkDatabase(name: unknown): void {
  if (typeof name === 'string' && /^[^/\\. "$*<>:|?\0]{1,63}$/.test(name)) return
  const accepted = 'up to 63 characters without spaces and /\\."$*<>:|?'
  throw new ConfigError(`Option "database" is ${describeValue(name)}; accepted: ${accepted}.`, {
    option: 'database',
    value: name,
    accepted,
  })
}

function readConnections(connections: number): number {
  if (Number.isInteger(connections) && connections >= 1 && connections <= 1000) return connections
  const accepted = 'a whole number from 1 to 1000'
  throw new ConfigError(`Option "connections" is ${describeValue(connections)}; accepted: ${accepted}.`, {
    option: 'connections',
    value: connections,
    accepted,
  })
}
