/** Public face of `@botmesh/sql-store/testing`: suites that every SQL store passes besides the conformance suites. */
export { sqlSuite, type SqlBed, type SqlFixture } from './sql.suite.js'
export { cutSuite, type CutFixture } from './cut.suite.js'
export { chainOfCommits, testCheckpoint, testMessage, type Chain } from './chain.js'
