/** Public face of `@botmesh/mongo-store`. */
export { MongoStore, type MongoStoreOptions } from './mongo-store.js'
export type { MongoLeases } from './mongo-locks.js'
export { SCHEMA_VERSION } from './schema.js'
