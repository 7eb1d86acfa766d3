/** Public face of `@botmesh/sql-store/testing`: suites that every SQL store passes besides the conformance suites. */
export { sqlSuite, type SqlBed, type SqlFixture } from './sql.suite.js'
export {
  chainOfCommits,
  cutSuite,
  testCheckpoint,
  testMessage,
  type Chain,
  type CutFixture,
} from '@botmesh/core/testing'
