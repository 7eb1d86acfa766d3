/** Public face of `@botmesh/sqlite-store`. */
export { SQLiteStore, type SQLiteStoreOptions } from './sqlite-store.js'
