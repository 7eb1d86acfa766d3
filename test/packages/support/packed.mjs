/** The workspace's packages as `npm pack` makes them: what a registry would have after a release. */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/**
 * @typedef {object} Manifest
 * @property {string} name
 * @property {string} version
 * @property {string} [description]
 * @property {string} [main]
 * @property {string} [types]
 * @property {Record<string, string | Record<string, string>>} exports
 * @property {Record<string, string>} [dependencies]
 * @property {Record<string, string>} [peerDependencies]
 * @property {Record<string, string>} [engines]
 * @property {Record<string, Record<string, string[]>>} [typesVersions]
 * @property {string[]} [files]
 * @property {boolean} [private]
 *
 * @typedef {{ manifest: Manifest, folder: string }} Package `folder`: absolute path in the workspace
 * @typedef {Package & { tarball: string }} Packed
 */

/**
 * Every package of libs/, private ones aside.
 * @returns {Package[]}
 */
export function packages() {
  return readdirSync(join(ROOT, 'libs'))
    .map((name) => join(ROOT, 'libs', name))
    .filter((folder) => existsSync(join(folder, 'package.json')))
    .map((folder) => ({ folder, manifest: JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) }))
    .filter(({ manifest }) => manifest.private !== true)
}

/**
 * What can be imported of a package, as one writes it: `@botmesh/core/testing`. Its package.json aside.
 * @param {Manifest} manifest
 * @returns {string[]}
 */
export function entriesOf({ name, exports }) {
  return Object.keys(exports)
    .filter((path) => path !== './package.json')
    .map((path) => name + path.slice(1))
}

/**
 * Packs them all, as they were built.
 * @param {string} into a folder
 * @returns {Promise<Packed[]>}
 */
export async function pack(into) {
  const all = packages()
  const args = ['pack', '--json', '--ignore-scripts', '--loglevel=error', `--pack-destination=${into}`]
  const { stdout } = await promisify(execFile)('npm', [...args, ...all.map(({ folder }) => folder)], {
    ...{ cwd: ROOT, maxBuffer: 64 * 1024 * 1024 },
  })
  /** @type {Map<string, string>} */
  const files = new Map(Object.values(JSON.parse(stdout)).map(({ name, filename }) => [name, filename]))
  return all.map((one) => {
    const file = files.get(one.manifest.name)
    if (file === undefined) throw new Error(`npm pack made nothing of ${one.manifest.name}.`)
    return { ...one, tarball: join(into, file) }
  })
}
