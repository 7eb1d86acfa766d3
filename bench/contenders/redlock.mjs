/** redlock on one server. */
import { Redis } from 'ioredis'
import Redlock from 'redlock'

export async function start({ port, prefix }) {
  const redis = new Redis(port, '127.0.0.1')
  const redlock = new (Redlock.default ?? Redlock)([redis], {
    retryCount: 6000,
    retryDelay: 10,
    retryJitter: 5,
  })
  redlock.on('error', () => undefined)
  return {
    async turn(key, work) {
      const lock = await redlock.acquire([`${prefix}:${key}`], 15_000)
      const result = work === undefined ? undefined : await work()
      await lock.release()
      return { fence: 0, result }
    },
    stop: () => redis.quit(),
  }
}
