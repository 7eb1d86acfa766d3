/** Public face of `@botmesh/sql-store`: for the packages that bring a database, not for applications. */
export type { ColumnTypes, SequenceQuery, SqlFlavor, UnitForm, Verdict } from './flavor.js'
export { SqlStore, SQL_STORE_OPTIONS, type SqlStoreOptions } from './sql-store.js'
export {
  CONNECT_TIMEOUT_MS,
  readServerOptions,
  type ServerForm,
  type ServerOptions,
  type ServerTarget,
} from './server-options.js'
export type { SqlLeases } from './sql-locks.js'
export { SCHEMA_VERSION } from './migrations.js'
export { tableName, type Int, type Tables } from './tables.js'
export { LONGEST_NAME } from './names.js'
