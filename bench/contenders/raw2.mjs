/** The floor: two trivial script calls one after the other per turn, through plain ioredis. Does not wait, is not fair,
 * has no fence: what any lock on Redis costs at least. */
import { Redis } from 'ioredis'

const TAKE = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])"
const RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

export async function start({ port, prefix, replica }) {
  const redis = new Redis(port, '127.0.0.1')
  const take = await redis.script('LOAD', TAKE)
  const release = await redis.script('LOAD', RELEASE)
  return {
    async turn(key, work) {
      const name = `${prefix}:${key}`
      await redis.evalsha(take, 1, name, replica, 15_000)
      const result = work === undefined ? undefined : await work()
      await redis.evalsha(release, 1, name, replica)
      return { fence: 0, result }
    },
    stop: () => redis.quit(),
  }
}
