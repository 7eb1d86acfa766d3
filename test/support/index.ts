/**
 * What tests of every package share: private servers, faults, replicas as processes, waiting. Everything started
 * here ends by its own process id when the spec file ends. Tests import it by relative path; sources never do.
 */
export { freePort } from '../../tools/servers/port.mjs'
export { MAIL_PASSWORD } from '../../tools/servers/dovecot.mjs'
export { startFaultProxy, type Direction, type FaultProxy } from './fault-proxy.js'
export {
  sharedMariaDbUrl,
  sharedPostgresUrl,
  sharedRedisUrl,
  startDovecot,
  startMariaDb,
  startPostgres,
  startRedis,
  type RedisInstance,
  type ServerInstance,
} from './servers.js'
export { Replica, spawnReplica, type NextOptions, type ReplicaEvent, type ReplicaExit } from './replica.js'
export {
  startRedisCluster,
  startRedisSentinels,
  type PrivateCluster,
  type PrivateSentinels,
} from './redis-sets.js'
export { onTestEnd } from './test-end.js'
export { waitFor, type WaitForOptions } from './wait-for.js'
