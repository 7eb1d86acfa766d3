/** @jest-config-loader esbuild-register */
// Jest for the packages as strangers install them: slow, and with a registry, so apart from all other tests.
import type { Config } from 'jest'

const config: Config = {
  rootDir: '../..',
  testEnvironment: 'node',
  testEnvironmentOptions: { customExportConditions: ['@botmesh/source', 'node', 'node-addons'] },
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: { '^.+\\.ts$': ['@swc/jest', {}] },
  testMatch: ['<rootDir>/test/packages/*.install-spec.ts'],
  testPathIgnorePatterns: ['/node_modules/', '/dist/'],
  globalSetup: '<rootDir>/test/packages/support/global-setup.mjs',
  globalTeardown: '<rootDir>/test/packages/support/global-teardown.mjs',
  testTimeout: 300_000,
}
export default config
