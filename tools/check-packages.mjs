/**
 * Looks at the built packages as an application would: what `npm pack` would ship contains every file that the
 * package's exports name and is no larger than it was, its declarations import only what it brings along, and each export
 * loads, by `import` and by `require`, without our source condition.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { strangeImports } from './declared-imports.mjs'
import { SIZE_LIMITS } from './size-limits.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** @param {string} folder */
function check(folder) {
  const dir = join(ROOT, 'libs', folder)
  const manifest = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'))
  /** @type {Array<[string, Record<string, string>]>} */
  const entries = Object.entries(manifest.exports).filter(([, target]) => typeof target === 'object')
  const { shipped, ownKiB } = packed(dir)
  const missing = entries
    .flatMap(([, target]) => Object.values(target).map((file) => file.replace('./', '')))
    .filter((file) => !shipped.has(file))
  const problems = missing.map((file) => `exports ${file}, which would not be shipped`)
  problems.push(
    ...[...shipped].filter((file) => /tsbuildinfo|\.spec\.|\.log$/.test(file)).map((file) => `ships ${file}`),
  )
  const limit = SIZE_LIMITS[manifest.name]?.ownKiB ?? 0
  if (ownKiB > limit && manifest.private !== true)
    problems.push(`has ${ownKiB} KiB, its limit in tools/size-limits.mjs is ${limit}`)
  problems.push(
    ...strangeImports(dir, manifest).map((what) => `has declarations that need more than it brings: ${what}`),
  )
  const names = entries.map(([path]) => manifest.name + path.slice(1))
  return [...problems, ...(missing.length === 0 ? loads(names) : [])].map(
    (problem) => `${manifest.name} ${problem}`,
  )
}

/**
 * @param {string} dir
 * @returns {{ shipped: Set<string>, ownKiB: number }}
 */
function packed(dir) {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=error']
  const { stdout } = spawnSync('npm', args, { cwd: dir, encoding: 'utf8' })
  const report = JSON.parse(stdout)
  const [{ files, unpackedSize }] = Array.isArray(report) ? report : Object.values(report)
  const paths = files.map((/** @type {{ path: string }} */ file) => file.path)
  return { shipped: new Set(paths), ownKiB: Math.ceil(unpackedSize / 1024) }
}

/** @param {string[]} names */
function loads(names) {
  return names.flatMap((name) => {
    const esm = `import(${JSON.stringify(name)})`
    const cjs = `require(${JSON.stringify(name)})`
    const both = `${esm}.then((a) => { const b = ${cjs}; if (Object.keys(a).some((k) => a[k] !== b[k])) throw Error('two copies') })`
    const args = ['--disable-warning=ExperimentalWarning', '-e', both]
    const { status, stderr } = spawnSync(process.execPath, args, {
      cwd: ROOT,
      encoding: 'utf8',
      timeout: 30_000,
    })
    return status === 0
      ? []
      : [
          `does not load as ${name}: ${/^.*Error.*$/m.exec(stderr.replace(/^\s*throw.*$/m, ''))?.[0] ?? stderr}`,
        ]
  })
}

const problems = readdirSync(join(ROOT, 'libs'))
  .filter((folder) => existsSync(join(ROOT, 'libs', folder, 'package.json')))
  .flatMap(check)
for (const problem of problems) console.log(problem)
process.exitCode = problems.length > 0 ? 1 : 0
