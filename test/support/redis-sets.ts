/** A Redis Cluster and a Sentinel set of a test's own, whose servers it kills, pauses and brings back. */
import { findProgram } from '../../tools/servers/find.mjs'
import { startPrivateCluster, type PrivateCluster } from '../../tools/servers/redis-cluster.mjs'
import { startPrivateSentinels, type PrivateSentinels } from '../../tools/servers/redis-sentinel.mjs'
import { redis } from '../../tools/servers/redis.mjs'
import { onTestEnd } from './test-end.js'

export type { PrivateCluster, PrivateSentinels }

function program(): string {
  const found = process.env[redis.testBinaryVariable] ?? findProgram(redis.program, redis.places)
  if (found === undefined) throw new Error(`No ${redis.program} found: \`npm test\` installs it or says how.`)
  return found
}

/** Three masters with a replica each. Ends by itself when the spec file ends. */
export async function startRedisCluster(
  options?: Parameters<typeof startPrivateCluster>[1],
): Promise<PrivateCluster> {
  const cluster = await startPrivateCluster(program(), options)
  onTestEnd(cluster.stop)
  return cluster
}

/** A primary with a replica and three Sentinels. Ends by itself when the spec file ends. */
export async function startRedisSentinels(
  options?: Parameters<typeof startPrivateSentinels>[1],
): Promise<PrivateSentinels> {
  const set = await startPrivateSentinels(program(), options)
  onTestEnd(set.stop)
  return set
}
