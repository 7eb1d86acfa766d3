/** @jest-config-loader esbuild-register */
// One Jest configuration for the workspace: sources run through SWC as ES modules, without a build.
import type { Config } from 'jest'

const config: Config = {
  testEnvironment: 'node',
  testEnvironmentOptions: { customExportConditions: ['@botmesh/source', 'node', 'node-addons'] },
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: { '^.+\\.ts$': ['@swc/jest', {}] },
  testMatch: [
    '<rootDir>/libs/*/test/**/*.spec.ts',
    '<rootDir>/apps/*/test/**/*.spec.ts',
    '<rootDir>/examples/**/*.spec.ts',
    '<rootDir>/test/**/*spec.ts',
  ],
  // What installs packages as strangers do has a configuration of its own: test/packages/jest.config.ts.
  testPathIgnorePatterns: ['/node_modules/', '/dist/', 'install-spec\\.ts$', '/test/packages/fixtures/'],
  // Modules of a finished test file stay in memory: a worker that holds too many of them is replaced by a fresh one,
  // which takes a second.
  workerIdleMemoryLimit: '400MB',
  coverageProvider: 'v8',
  // Kept between runs, which have a place for temporary files of their own.
  cacheDirectory: '<rootDir>/node_modules/.cache/jest',
  testTimeout: 20_000,
}
export default config
