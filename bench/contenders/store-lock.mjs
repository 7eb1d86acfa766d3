/** The fenced lock of `RedisStore`; who does not get it tries again like the others, every 10 ms. */
import { setTimeout as pause } from 'node:timers/promises'
import { RedisStore } from '@botmesh/redis-store'

export async function start({ port, prefix }) {
  const store = new RedisStore({ url: `redis://127.0.0.1:${port}`, prefix })
  await store.open()
  return {
    async turn(key, work) {
      let lock = await store.acquireLockFenced(key, 15_000)
      while (!lock) {
        await pause(10)
        lock = await store.acquireLockFenced(key, 15_000)
      }
      const result = work === undefined ? undefined : await work()
      if (!(await store.releaseLock(key, lock.token))) throw new Error('a lock was lost')
      return { fence: lock.fence, result }
    },
    stop: () => store.close(),
  }
}
