/** Where the demo's replicas meet: a given Redis, a private one, or, without any, a hub in this process. */
import { randomBytes } from 'node:crypto'
import { findProgram } from '../servers/find.mjs'
import { startPrivateServer } from '../servers/private-server.mjs'
import { redis } from '../servers/redis.mjs'

export interface DemoBackend {
  /** Null: in one process. */
  redisUrl: string | null
  /** For the headline. */
  what: string
  stop(): Promise<void>
}

export async function provideBackend(
  inProcess: boolean,
  print: (line: string) => void,
): Promise<DemoBackend> {
  const nothing = () => Promise.resolve()
  const given = process.env.REDIS_URL
  if (!inProcess && given !== undefined && given !== '') {
    return { redisUrl: given, what: 'each a process, on the Redis of REDIS_URL', stop: nothing }
  }
  const program = inProcess ? undefined : findProgram(redis.program, redis.places)
  if (program !== undefined) {
    const server = await startPrivateServer(redis, program)
    return {
      redisUrl: server.url,
      what: `each a process, on a private redis-server (${server.url})`,
      stop: server.stop,
    }
  }
  if (!inProcess) {
    print('\n  No redis-server is installed and REDIS_URL is not set: the three replicas run in one process,')
    print('  on the in-process hub. They share their chats all the same; only freezing one cannot be shown.')
  }
  return { redisUrl: null, what: 'all in one process, on the in-process hub', stop: nothing }
}

/** A prefix of this run's own, so that runs on one Redis never meet. */
export function freshPrefix(): string {
  return `demo-${randomBytes(4).toString('hex')}`
}
