/** One private redis-server for a whole run: its own port and directory, ended by its own pid. */
import { Redis } from 'ioredis'
import { findProgram } from '../tools/servers/find.mjs'
import { startPrivateServer } from '../tools/servers/private-server.mjs'
import { redis } from '../tools/servers/redis.mjs'

export async function startRedis() {
  const program = findProgram(redis.program, redis.places)
  if (program === undefined) throw new Error('no redis-server found: install Redis, or put it into PATH')
  const server = await startPrivateServer(redis, program)
  const watched = watch(server.port)
  return {
    ...watched,
    pid: server.pid,
    async stop() {
      watched.admin.disconnect()
      await server.stop()
    },
  }
}

/** A server that others started, seen by an administrator. */
export function watch(port) {
  const admin = new Redis(port, '127.0.0.1')
  return {
    port,
    admin,
    /** Its version, for the report. */
    async version() {
      return /redis_version:(\S+)/.exec(await admin.info('server'))?.[1] ?? 'unknown'
    },
    /** CPU time of the server so far, in µs; script calls; and all that clients have sent but the admin's questions. */
    async usage() {
      const cpu = await admin.info('cpu')
      const stats = await admin.info('commandstats')
      const seconds = (name) => Number(new RegExp(`${name}:([\\d.]+)`).exec(cpu)?.[1] ?? 0)
      const calls = (name) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
      const scripts = calls('evalsha') + calls('eval')
      return {
        cpuUs: (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1e6,
        scripts,
        // What scripts call inside is not counted: none of ours calls these.
        calls: scripts + calls('ping') + calls('subscribe') + calls('unsubscribe'),
      }
    },
  }
}
