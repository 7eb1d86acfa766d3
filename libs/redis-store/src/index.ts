/** Public face of `@botmesh/redis-store`. */
export { RedisCoordinator, type RedisCoordinatorOptions } from './redis-coordinator.js'
export { RedisStore, type RedisStoreOptions } from './redis-store.js'
export type { RedisLeases } from './redis-locks.js'
export type { RedisOptions } from './redis-options.js'
