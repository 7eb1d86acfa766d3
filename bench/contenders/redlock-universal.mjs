/** redlock-universal on one server. */
import { Redis } from 'ioredis'
import { IoredisAdapter, createLock } from 'redlock-universal'

export async function start({ port, prefix }) {
  const redis = new Redis(port, '127.0.0.1')
  const adapter = new IoredisAdapter(redis)
  return {
    async turn(key, work) {
      const lock = createLock({
        ...{ adapter, key: `${prefix}:${key}`, ttl: 15_000 },
        ...{ retryAttempts: 6000, retryDelay: 10 },
      })
      const handle = await lock.acquire()
      const result = work === undefined ? undefined : await work()
      await lock.release(handle)
      return { fence: 0, result }
    },
    stop: () => redis.quit(),
  }
}
