/**
 * Checks who imports whom (tools/imports/rooms.mjs has the table): rooms of core, packages among each other,
 * relative paths that leave their package, deep imports, undeclared dependencies, cycles.
 *
 * Own code rather than dependency-cruiser, madge or skott: each of them needs its own settings to see through
 * our `.js` suffixes and export conditions, none of them knows what a pure kernel is, and the whole is 300 lines
 * over the `typescript` package that is here anyway.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { checkImports } from './imports/check.mjs'
import { trackedFiles } from './project-files.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CODE = /^(libs|apps)\/[^/]+\/(src|test)\/.*\.(ts|mjs)$|^(test|bench|tools|examples)\/.*\.(ts|mjs)$/

/** Copied into applications that have dependencies of their own. */
const STRANGERS = 'test/packages/fixtures/vitest/'

/** @returns {import('./imports/check.mjs').Workspace} */
export function readWorkspace() {
  const paths = trackedFiles()
  const read = (/** @type {string} */ path) => readFileSync(`${ROOT}${path}`, 'utf8')
  const code = paths.filter(
    (path) => CODE.test(path) && !path.endsWith('.d.ts') && !path.startsWith(STRANGERS),
  )
  const manifests = paths.filter((path) => /^((libs|apps)\/[^/]+\/)?package\.json$/.test(path))
  return {
    files: new Map(code.map((path) => [path, read(path)])),
    manifests: new Map(
      manifests.map((path) => [path.replace(/\/?package\.json$/, '') || '.', JSON.parse(read(path))]),
    ),
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const workspace = readWorkspace()
  const findings = checkImports(workspace)
  for (const { file, line, rule, fix } of findings) console.log(`${file}:${line}  ${rule}\n    Fix: ${fix}`)
  console.log(`${workspace.files.size} files, ${findings.length} forbidden imports`)
  process.exitCode = findings.length > 0 ? 1 : 0
}
