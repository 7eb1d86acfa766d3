/** Public face of `@botmesh/redis-store`. */
export { RedisCoordinator, type RedisCoordinatorOptions } from './redis-coordinator.js'
export type { RedisOptions } from './redis-options.js'
