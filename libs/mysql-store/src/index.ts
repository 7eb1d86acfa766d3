/** Public face of `@botmesh/mysql-store`. */
export { MySQLStore, type MySQLStoreOptions } from './mysql-store.js'
