/**
 * The packages as strangers install them: tarballs into fresh applications, outside the workspace. Needs the npm
 * registry, or a cache that has everything; where it has neither it fails and says so.
 */
import { jest } from './jest.mjs'

const LIMIT_MS = 30 * 60_000

/** @returns {Promise<import('./run.mjs').Outcome>} */
export function installs() {
  return jest({ args: ['--config=test/packages/jest.config.ts'], env: {}, limitMs: LIMIT_MS })
}
