/** Public face of `@botmesh/sql-store/testing`: suites that every SQL store passes besides the conformance suites. */
export { sqlSuite, type SqlBed, type SqlFixture } from './sql.suite.js'
export {
  SQL_GUARANTEES,
  cutBed,
  serverSuite,
  storesOf,
  type Login,
  type ServerFixture,
} from './server.suite.js'
export {
  chainOfCommits,
  cutSuite,
  testCheckpoint,
  testMessage,
  type Chain,
  type CutFixture,
} from '@botmesh/core/testing'
