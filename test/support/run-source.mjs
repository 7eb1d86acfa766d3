/**
 * Runs a script in TypeScript as few files: it and all sources of this project that it imports are put together by
 * esbuild, once, and packages are loaded as they are. A process that loads its five hundred sources one by one is busy
 * for a second before it begins; of one file, for a third of that, and tests start hundreds of processes.
 *
 *   node [--enable-source-maps] test/support/run-source.mjs script.ts [arguments]
 *
 * What was put together is kept in node_modules/.cache, as long as none of its sources has changed. `import.meta.url` is
 * each source's own. Not for scripts that import a source whose name is not known before they run: it would be there
 * twice.
 */
import { mkdir, open, readFile, rm, stat } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { CACHE, CONFIG, hash, keep, ROOT, transformed } from './transformed.mjs'

/**
 * @typedef {[path: string, changedAt: number, size: number]} Input
 * @typedef {{ file: string, inputs: Input[] }} Kept
 */

const CONDITION = '@botmesh/source'
const LOOK_MS = 50
/** It takes a second or two. */
const PATIENCE_MS = 30_000
/** What decides besides the sources. */
const ALWAYS = [CONFIG, join(ROOT, 'package-lock.json'), fileURLToPath(import.meta.url)]

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
    const now = await Promise.all(inputs.map(([path]) => inputOf(path)))
    return JSON.stringify(now) === JSON.stringify(inputs) ? file : null
  } catch {
    // Never made, or one of its sources is gone.
    return null
  }
}

/** @param {string} path @returns {Promise<Input>} */
async function inputOf(path) {
  const { mtimeMs, size } = await stat(path)
  return [path, mtimeMs, size]
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
      await (await open(lock, 'wx')).close()
      break
    } catch (error) {
      // Another one is at it, or died at it.
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error
    }
    await delay(LOOK_MS)
    const file = await kept(entry)
    if (file !== null) return file
    const age = await stat(lock).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      () => 0,
    )
    if (age > PATIENCE_MS) await rm(lock, { force: true })
  }
  try {
    return (await kept(entry)) ?? (await put(entry))
  } finally {
    await rm(lock, { force: true })
  }
}

/**
 * @param {string} entry
 * @returns {Promise<string>} the file that it was put into
 */
async function put(entry) {
  const esbuild = await import('esbuild')
  const outdir = placeOf(entry)
  /** @type {Set<string>} */
  const sources = new Set(ALWAYS)
  const { outputFiles } = await esbuild.build({
    ...{ entryPoints: { entry }, bundle: true, write: false, outdir },
    ...{ platform: 'node', format: 'esm', target: 'es2022', conditions: [CONDITION] },
    // What is imported only when it is needed, and the packages that it imports, are loaded only then.
    ...{ splitting: true, outExtension: { '.js': '.mjs' }, chunkNames: '[hash]' },
    // As if each were a module of its own: nothing is left out, classes keep their names.
    ...{ treeShaking: false, ignoreAnnotations: true, keepNames: true, logLevel: 'error' },
    ...{ sourcemap: 'linked', sourcesContent: false },
    plugins: [packagesStay(), sourcesOf(sources)],
  })
  await esbuild.stop()
  const inputs = await Promise.all([...sources].map(inputOf))
  // Another process may put the same together from other sources at this moment: each has a folder of its own.
  const folder = join(CACHE, 'whole', hash(...outputFiles.map((one) => one.hash)))
  for (const { path, contents } of outputFiles) await keep(join(folder, relative(outdir, path)), contents)
  const file = join(folder, 'entry.mjs')
  await keep(`${outdir}.json`, JSON.stringify({ file, inputs }))
  return file
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
        const isOurs = !found.path.includes('/node_modules/')
        if (isOurs || found.external) return isOurs && !found.external ? { path: found.path } : undefined
        return { path: pathToFileURL(found.path).href, external: true }
      })
    },
  }
}

/** @param {Set<string>} sources @returns {import('esbuild').Plugin} */
function sourcesOf(sources) {
  return {
    name: 'sources',
    setup(build) {
      build.onLoad({ filter: /\.[mc]?[jt]s$/ }, async ({ path }) => {
        sources.add(path)
        const text = path.endsWith('.ts') ? await transformed(path) : await readFile(path, 'utf8')
        const own = JSON.stringify(pathToFileURL(path).href)
        return {
          contents: text.replaceAll('import.meta.url', own),
          loader: 'js',
          resolveDir: dirname(path),
        }
      })
    },
  }
}
