/** redis-semaphore's Mutex: polls every 10 ms, which is its default. */
import { Redis } from 'ioredis'
import { Mutex } from 'redis-semaphore'

export async function start({ port, prefix, mode }) {
  const redis = new Redis(port, '127.0.0.1')
  return {
    async turn(key, work) {
      const mutex = new Mutex(redis, `${prefix}:${key}`, {
        lockTimeout: 15_000,
        acquireTimeout: 60_000,
        // Its renewal timer is per lock; contended runs keep it, as it is what makes a lock outlive its timeout.
        ...(mode === 'norefresh' ? { refreshInterval: 0 } : {}),
      })
      await mutex.acquire()
      const result = work === undefined ? undefined : await work()
      await mutex.release()
      return { fence: 0, result }
    },
    stop: () => redis.quit(),
  }
}
