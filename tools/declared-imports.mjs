/**
 * What a package's declarations make an application's compiler look for: everything that they import, from the files that
 * `exports` names on. Whoever has not installed an optional peer must still be able to compile.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const IMPORTED = /(?:\bfrom\s+|\bimport\s*\(\s*|\bimport\s+)["']([^"']+)["']/g

/**
 * @typedef {{ exports: Record<string, unknown>, dependencies?: Record<string, string>,
 *   peerDependencies?: Record<string, string>, peerDependenciesMeta?: Record<string, { optional?: boolean }> }} Manifest
 */

/**
 * @param {string} dir of a built package
 * @param {Manifest} manifest
 * @returns {string[]} '<file> imports <module>' for each module that installing the package does not bring along
 */
export function strangeImports(dir, manifest) {
  const { dependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} } = manifest
  const required = Object.keys(peerDependencies).filter(
    (name) => peerDependenciesMeta[name]?.optional !== true,
  )
  const brought = new Set([...Object.keys(dependencies), ...required])
  const entries = Object.values(manifest.exports).flatMap((target) =>
    typeof target === 'object' && target !== null && 'types' in target ? [String(target.types)] : [],
  )
  const queue = entries.map((entry) => join(dir, entry))
  const seen = new Set(queue)
  /** @type {string[]} */
  const found = []
  for (const file of queue) {
    if (!existsSync(file)) continue
    for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(IMPORTED)) {
      if (name.startsWith('.')) {
        const next = join(dirname(file), name.replace(/\.js$/, '.d.ts'))
        if (!seen.has(next)) queue.push(next)
        seen.add(next)
      } else if (!name.startsWith('node:') && !brought.has(packageOf(name))) {
        found.push(`${file.slice(dir.length + 1)} imports ${name}`)
      }
    }
  }
  return found
}

/** @param {string} name */
function packageOf(name) {
  return name.split('/', name.startsWith('@') ? 2 : 1).join('/')
}
