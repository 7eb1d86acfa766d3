/**
 * Runs a script in TypeScript as few files: it and all sources of this project that it imports are put together by
 * esbuild, once, and packages are loaded as they are. A process that loads its hundreds of sources one by one is busy for
 * more than a second before it begins; of one file, for half of that, and tests start hundreds of processes.
 *
 *   node [--enable-source-maps] test/support/run-source.mjs script.ts [arguments]
 *
 * What was put together is kept in node_modules/.cache, as long as none of its sources has changed. `import.meta.url` is
 * each source's own (also where it stands in a text). Not for scripts that import a source whose name is not known before
 * they run, which would be there twice, nor for those that must do something before a package is loaded: all packages
 * come before all sources.
 */
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { isAlive } from '../../tools/alive.mjs'
import { CACHE, CONFIG, hash, keep, ROOT, transformed } from './transformed.mjs'

/**
 * @typedef {[path: string, changedAt: number, markedAt: number, size: number]} Input
 * @typedef {{ file: string, inputs: Input[] }} Kept
 */

const CONDITION = '@botmesh/source'
const LOOK_MS = 50
/** It takes a second or two. */
const PATIENCE_MS = 30_000
/** What decides besides the sources, for this project's packages what they export. */
const ALWAYS = [
  ...[
    CONFIG,
    ...['package-lock.json', 'tsconfig.json', 'tsconfig.base.json'].map((name) => join(ROOT, name)),
  ],
  ...[import.meta.url, new URL('transformed.mjs', import.meta.url)].map((url) => fileURLToPath(url)),
  ...readdirSync(join(ROOT, 'libs')).map((name) => join(ROOT, 'libs', name, 'package.json')),
].filter((path) => existsSync(path))
/** From its last start: who runs it may still be loading parts of it. */
const KEPT_MS = 24 * 3_600_000

const script = resolve(process.argv[2] ?? '')
process.argv.splice(1, 2, script)
await import(pathToFileURL((await kept(script)) ?? (await putOnce(script))).href)

/** @param {string} entry */
function placeOf(entry) {
  return join(CACHE, 'whole', hash(entry, process.env['ANOTHER_RELEASE'] ?? ''))
}

/**
 * @param {string} entry
 * @returns {Promise<string | null>} the file, if nothing that it was made of has changed
 */
async function kept(entry) {
  try {
    /** @type {Kept} */
    const { file, inputs } = JSON.parse(await readFile(`${placeOf(entry)}.json`, 'utf8'))
    const [now] = await Promise.all([Promise.all(inputs.map(([path]) => inputOf(path))), stat(file)])
    if (JSON.stringify(now) !== JSON.stringify(inputs)) return null
    const started = new Date()
    for (const path of [dirname(file), `${placeOf(entry)}.json`]) await utimes(path, started, started)
    return file
  } catch {
    // Never made, or something is gone.
    return null
  }
}

/** @param {string} path @returns {Promise<Input>} */
async function inputOf(path) {
  const { mtimeMs, ctimeMs, size } = await stat(path)
  return [path, mtimeMs, ctimeMs, size]
}

/**
 * Of processes that start together one puts it together, and the others wait for it.
 * @param {string} entry
 */
async function putOnce(entry) {
  const lock = `${placeOf(entry)}.lock`
  await mkdir(dirname(lock), { recursive: true })
  for (;;) {
    try {
      await writeFile(lock, String(process.pid), { flag: 'wx' })
      break
    } catch (error) {
      // Another one is at it, or died at it.
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error
    }
    await delay(LOOK_MS)
    const file = await kept(entry)
    if (file !== null) return file
    if (await isLeft(lock)) await rm(lock, { force: true })
  }
  try {
    return (await kept(entry)) ?? (await put(entry))
  } finally {
    await rm(lock, { force: true })
  }
}

/**
 * @param {string} lock
 * @returns {Promise<boolean>} whoever made it is not at it any more
 */
async function isLeft(lock) {
  try {
    const [pid, { mtimeMs }] = await Promise.all([readFile(lock, 'utf8'), stat(lock)])
    return (pid !== '' && !isAlive(Number(pid))) || Date.now() - mtimeMs > PATIENCE_MS
  } catch {
    // Done meanwhile.
    return false
  }
}

/**
 * @param {string} entry
 * @returns {Promise<string>} the file that it was put into
 */
async function put(entry) {
  const esbuild = await import('esbuild')
  const outdir = placeOf(entry)
  // As they are before they are read: what changes meanwhile is found changed.
  /** @type {Map<string, Input>} */
  const inputs = new Map()
  for (const path of ALWAYS) inputs.set(path, await inputOf(path))
  const { outputFiles } = await esbuild.build({
    ...{ entryPoints: { entry }, bundle: true, write: false, outdir },
    ...{ platform: 'node', format: 'esm', target: 'es2022', conditions: [CONDITION] },
    // What is imported only when it is needed, and the packages that it imports, are loaded only then.
    ...{ splitting: true, outExtension: { '.js': '.mjs' }, chunkNames: '[hash]' },
    // As if each were a module of its own: nothing is left out, classes keep their names.
    ...{ treeShaking: false, ignoreAnnotations: true, keepNames: true, logLevel: 'error' },
    ...{ sourcemap: 'linked', sourcesContent: false },
    plugins: [packagesStay(), sourcesOf(inputs)],
  })
  await esbuild.stop()
  // Another process may put the same together from other sources at this moment: each has a folder of its own.
  const folder = join(CACHE, 'whole', hash(...outputFiles.map((one) => one.hash)))
  for (const { path, contents } of outputFiles) await keep(join(folder, relative(outdir, path)), contents)
  const file = join(folder, 'entry.mjs')
  await keep(`${outdir}.json`, JSON.stringify({ file, inputs: [...inputs.values()] }))
  await removeOld(dirname(folder))
  return file
}

/** @param {string} folder whose entries have the time of their last start */
async function removeOld(folder) {
  for (const name of await readdir(folder)) {
    const path = join(folder, name)
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Infinity }))
    if (Date.now() - mtimeMs > KEPT_MS) await rm(path, { recursive: true, force: true })
  }
}

/** @returns {import('esbuild').Plugin} packages are imported from where their importer finds them */
function packagesStay() {
  return {
    name: 'packages stay',
    setup(build) {
      build.onResolve({ filter: /^[^./]/ }, async ({ path, kind, resolveDir, pluginData }) => {
        if (pluginData === 'asked' || kind === 'entry-point' || path.startsWith('node:')) return undefined
        const found = await build.resolve(path, { kind, resolveDir, pluginData: 'asked' })
        if (found.errors.length > 0) return { path, external: true }
        if (found.external) return undefined
        const isOurs = !found.path.includes('/node_modules/')
        return isOurs ? { path: found.path } : { path: pathToFileURL(found.path).href, external: true }
      })
    },
  }
}

/** @param {Map<string, Input>} inputs @returns {import('esbuild').Plugin} */
function sourcesOf(inputs) {
  return {
    name: 'sources',
    setup(build) {
      build.onLoad({ filter: /\.[mc]?[jt]s$/ }, async ({ path }) => {
        inputs.set(path, await inputOf(path))
        const text = path.endsWith('.ts') ? await transformed(path) : await readFile(path, 'utf8')
        const own = JSON.stringify(pathToFileURL(path).href)
        return {
          contents: text.replaceAll('import.meta.url', () => own),
          loader: 'js',
          resolveDir: dirname(path),
        }
      })
    },
  }
}
