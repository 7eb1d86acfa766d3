/** Redis instances that tests start, kill, pause and restart. */
import { findProgram } from '../../tools/servers/find.mjs'
import { startPrivateServer, type PrivateServer } from '../../tools/servers/private-server.mjs'
import { redis } from '../../tools/servers/redis.mjs'
import { onTestEnd } from './test-end.js'

export interface RedisInstance {
  readonly url: string
  readonly port: number
  /** Of the process that runs now: changes with `restart()`. */
  readonly pid: number
  /** Orderly end. Idempotent; happens by itself when the spec file ends. */
  stop(): Promise<void>
  /** SIGKILL. */
  kill(): Promise<void>
  /** SIGSTOP: connections stay open and nothing is answered. */
  pause(): void
  /** SIGCONT. */
  resume(): void
  /** Kills it if it runs and starts it on the same port; empty unless `args` turned persistence on. */
  restart(): Promise<void>
}

/** A private instance, without persistence unless `args` (such as `['--appendonly', 'yes']`) say otherwise. */
export async function startRedis(options: { port?: number; args?: string[] } = {}): Promise<RedisInstance> {
  const program = process.env.BOTMESH_REDIS_SERVER ?? findProgram(redis.program)
  if (program === undefined)
    throw new Error('No redis-server found: install it, or run `npm test`, which does.')
  const first = await startPrivateServer(redis, program, options)
  let current: PrivateServer = first
  const stop = async () => {
    await current.stop()
    await first.stop() // Removes the directory, which a restarted instance was only lent.
  }
  onTestEnd(stop)
  return {
    url: first.url,
    port: first.port,
    get pid() {
      return current.pid
    },
    stop,
    kill: () => current.kill(),
    pause: () => current.signal('SIGSTOP'),
    resume: () => current.signal('SIGCONT'),
    async restart() {
      await current.kill()
      const args = options.args ?? []
      current = await startPrivateServer(redis, program, { port: first.port, dir: first.dir, args })
    },
  }
}

let shared: Promise<string> | undefined

/**
 * Address of a Redis that tests share, each with a prefix of its own: the one that `npm test` provides, else an
 * instance for this spec file. For tests that do not disturb the server.
 */
export function sharedRedisUrl(): Promise<string> {
  const given = process.env.BOTMESH_REDIS_URL ?? process.env.REDIS_URL
  shared ??= given === undefined ? startRedis().then(({ url }) => url) : Promise.resolve(given)
  return shared
}
