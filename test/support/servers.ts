/** Real servers that tests start, kill, pause and restart. */
import { setTimeout as delay } from 'node:timers/promises'
import { dovecot } from '../../tools/servers/dovecot.mjs'
import { findProgram } from '../../tools/servers/find.mjs'
import { mariadb } from '../../tools/servers/mariadb.mjs'
import { postgres } from '../../tools/servers/postgres.mjs'
import {
  startPrivateServer,
  type PrivateServer,
  type ServerDescription,
} from '../../tools/servers/private-server.mjs'
import { redis } from '../../tools/servers/redis.mjs'
import { onTestEnd } from './test-end.js'

export interface ServerInstance {
  readonly url: string
  readonly port: number
  /** Its directory, until it is stopped. */
  readonly dir: string
  /** Of the process that runs now: changes with `restart()`. */
  readonly pid: number
  /** Orderly end. Idempotent; happens by itself when the spec file ends. */
  stop(): Promise<void>
  /** SIGKILL. */
  kill(): Promise<void>
  /** SIGSTOP: connections stay open and nothing is answered. PostgreSQL: only new connections are not served. */
  pause(): void
  /** SIGCONT. */
  resume(): void
  /** Kills it if it runs and starts it on the same port and data. Redis is empty then, unless `args` turned
   * persistence on. */
  restart(): Promise<void>
}
export type RedisInstance = ServerInstance

export interface StartOptions {
  /** Default: a free one. */
  port?: number
  /** More arguments for the server; they win over ours. */
  args?: string[]
}

/** A private instance, without persistence unless `args` (such as `['--appendonly', 'yes']`) say otherwise. */
export const startRedis = (options?: StartOptions): Promise<ServerInstance> => start(redis, options)
/** A private instance with an empty database `postgres` and superuser `postgres`. */
export const startPostgres = (options?: StartOptions): Promise<ServerInstance> => start(postgres, options)
/** A private instance with an empty database `test` and user `root`. */
export const startMariaDb = (options?: StartOptions): Promise<ServerInstance> => start(mariadb, options)
/** A private instance: `dir` has its certificate and its LMTP socket, whoever knows `MAIL_PASSWORD` a mailbox. */
export const startDovecot = (options?: StartOptions): Promise<ServerInstance> => start(dovecot, options)

/**
 * Addresses of servers that tests share, each test with a prefix of its own: those that `npm test` provides, else an
 * instance for this spec file. For tests that do not disturb the server.
 */
export const sharedRedisUrl = (): Promise<string> => shared(redis)
export const sharedPostgresUrl = (): Promise<string> => shared(postgres)
export const sharedMariaDbUrl = (): Promise<string> => shared(mariadb)

const RESTARTS = 20

async function start(server: ServerDescription, options: StartOptions = {}): Promise<ServerInstance> {
  const program = process.env[server.testBinaryVariable] ?? findProgram(server.program, server.places)
  if (program === undefined)
    throw new Error(`No ${server.program} found: \`npm test\` installs it or says how.`)
  const first = await startPrivateServer(server, program, options)
  let current: PrivateServer = first
  const stop = async () => {
    await current.stop()
    await first.stop() // Removes the directory, which a restarted instance was only lent.
  }
  onTestEnd(stop)
  return {
    url: first.url,
    port: first.port,
    dir: first.dir,
    get pid() {
      return current.pid
    },
    stop,
    kill: () => current.kill(),
    pause: () => current.signal('SIGSTOP'),
    resume: () => current.signal('SIGCONT'),
    async restart() {
      await current.kill()
      const place = { port: first.port, dir: first.dir, args: options.args ?? [] }
      // What a killed server leaves behind (sockets, PostgreSQL's other processes) may take a moment to go.
      for (let left = RESTARTS; ; left -= 1) {
        try {
          current = await startPrivateServer(server, program, place)
          return
        } catch (error) {
          if (left === 0) throw error
          await delay(100)
        }
      }
    },
  }
}

const sharedUrls = new Map<ServerDescription, Promise<string>>()

function shared(server: ServerDescription): Promise<string> {
  const known = sharedUrls.get(server)
  if (known !== undefined) return known
  const given = process.env[server.testUrlVariable] ?? process.env[server.urlVariable]
  const url = given === undefined ? start(server).then((instance) => instance.url) : Promise.resolve(given)
  sharedUrls.set(server, url)
  return url
}
