/** The project's own files: what git tracks or would track; without git, everything but what is generated. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const GENERATED = new Set(['node_modules', 'dist', 'coverage', '.git', '.botmesh'])

/**
 * @param {{ fresh?: boolean }} [options] `fresh`: also files that git does not know yet; default true
 * @returns {string[]} paths from the root, with slashes, sorted
 */
export function trackedFiles({ fresh = true } = {}) {
  return (listedByGit(fresh) ?? listedByWalk(ROOT)).filter((path) => existsSync(join(ROOT, path))).sort()
}

/** @param {boolean} fresh */
function listedByGit(fresh) {
  try {
    const args = ['ls-files', '-z', '--cached', ...(fresh ? ['--others', '--exclude-standard'] : [])]
    const list = execFileSync('git', args, {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    return [...new Set(list.split('\0').filter((path) => path !== ''))]
  } catch {
    return undefined // No git here, or no repository (an unpacked archive).
  }
}

/**
 * @param {string} dir
 * @returns {string[]}
 */
function listedByWalk(dir) {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    if (GENERATED.has(entry.name)) return []
    const path = join(dir, entry.name)
    return entry.isDirectory() ? listedByWalk(path) : [relative(ROOT, path).split(sep).join('/')]
  })
}
