/** Public face of `@botmesh/sql-store/testing`: suites that every SQL store passes besides the conformance suites. */
export { sqlSuite, type SqlBed, type SqlFixture } from './sql.suite.js'
export { SQL_GUARANTEES, serverSuite, storesOf, type Login, type ServerFixture } from './server.suite.js'
export { chainOfCommits, testCheckpoint, testMessage, type Chain } from '@botmesh/core/testing'
