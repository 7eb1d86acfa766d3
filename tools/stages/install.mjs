/** Installs the development dependencies, unless exactly those of the lock file are there. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT, runQuietly } from './run.mjs'

/** @returns {Promise<import('./run.mjs').Outcome>} */
export async function install() {
  if (isInstalled()) return { passed: 1, failed: 0, note: 'up to date' }
  // Scripts of packages are not run: nothing here needs them.
  return runQuietly(['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'])
}

/** @typedef {{ version?: string, link?: boolean, optional?: boolean, devOptional?: boolean, peer?: boolean }} Locked */

/** npm notes what it installed in node_modules/.package-lock.json, in the form of the lock file. */
function isInstalled() {
  const note = join(ROOT, 'node_modules/.package-lock.json')
  if (!existsSync(note)) return false
  const wanted = packagesOf(join(ROOT, 'package-lock.json'))
  const present = packagesOf(note)
  for (const [path, { version, optional, link }] of wanted) {
    // Optional ones are for other systems where they are absent; links are to our own packages.
    const there = present.get(path)
    if (there === undefined ? optional !== true : link !== true && there.version !== version) return false
  }
  return [...present.keys()].every((path) => wanted.has(path))
}

/**
 * @param {string} file
 * @returns {Map<string, Locked>}
 */
function packagesOf(file) {
  const { packages } = JSON.parse(readFileSync(file, 'utf8'))
  return new Map(Object.entries(packages).filter(([path]) => path.startsWith('node_modules/')))
}
