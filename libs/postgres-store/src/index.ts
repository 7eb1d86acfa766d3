/** Public face of `@botmesh/postgres-store`. */
export { PostgresStore, type PostgresStoreOptions } from './postgres-store.js'
