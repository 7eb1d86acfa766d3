/** A private redis-server for tests, with a plain client for looking behind the scenes. */
import { Redis } from 'ioredis'
import { freePort, startRedis as startServer } from '../../../test/support/index.js'

export { freePort }

export interface PrivateRedis {
  readonly port: number
  readonly url: string
  /** Closed by `stop`. */
  readonly admin: Redis
  signal(name: NodeJS.Signals): void
  /** Kills it and starts it again, empty, on the same port. */
  restart(): Promise<void>
  /** Kills it; `restart` brings it back. */
  kill(): Promise<void>
  stop(): Promise<void>
}

/** @param args of redis-server, after ours: they win. */
export async function startRedis(...args: string[]): Promise<PrivateRedis> {
  const server = await startServer({ args })
  const admin = new Redis(server.port, '127.0.0.1', {
    lazyConnect: true,
    retryStrategy: () => 50,
    // Disconnecting a connection that is gone already leaves a timer of this length.
    disconnectTimeout: 50,
    maxRetriesPerRequest: null,
  })
  admin.on('error', () => undefined)
  return {
    port: server.port,
    url: server.url,
    admin,
    signal: (name) => void process.kill(server.pid, name),
    kill: () => server.kill(),
    restart: () => server.restart(),
    async stop() {
      admin.disconnect()
      await server.stop()
    },
  }
}
