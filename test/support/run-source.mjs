/**
 * Runs a script in TypeScript as one file: it and all sources of this project that it imports are put together by
 * esbuild, once, and packages are loaded as they are. A process that loads its five hundred sources one by one is busy
 * for a second before it begins; of one file for a third of that, and tests start hundreds of processes.
 *
 *   node [--enable-source-maps] test/support/run-source.mjs script.ts [arguments]
 *
 * What was put together is kept in node_modules/.cache, as long as none of its sources has changed. `import.meta.url` is
 * each source's own. Not for scripts that import a source whose name is not known before they run: it would be there
 * twice.
 */
import { readFile, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { CACHE, CONFIG, hash, keep, ROOT, transformed } from './transformed.mjs'

/**
 * @typedef {[path: string, changedAt: number, size: number]} Input
 * @typedef {{ file: string, inputs: Input[] }} Kept
 */

const CONDITION = '@botmesh/source'
/** What decides besides the sources. */
const ALWAYS = [CONFIG, join(ROOT, 'package-lock.json'), fileURLToPath(import.meta.url)]

const script = resolve(process.argv[2] ?? '')
process.argv.splice(1, 2, script)
await import(pathToFileURL((await kept(script)) ?? (await put(script))).href)

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
 * @param {string} entry
 * @returns {Promise<string>} the file that it was put into
 */
async function put(entry) {
  const esbuild = await import('esbuild')
  /** @type {Set<string>} */
  const sources = new Set(ALWAYS)
  const { outputFiles } = await esbuild.build({
    ...{ entryPoints: [entry], bundle: true, write: false, outfile: `${placeOf(entry)}.mjs` },
    ...{ platform: 'node', format: 'esm', target: 'es2022', conditions: [CONDITION] },
    // As if each were a module of its own: nothing is left out, classes keep their names.
    ...{ treeShaking: false, ignoreAnnotations: true, keepNames: true, logLevel: 'error' },
    ...{ sourcemap: 'linked', sourcesContent: false },
    plugins: [packagesStay(), sourcesOf(sources)],
  })
  await esbuild.stop()
  const inputs = await Promise.all([...sources].map(inputOf))
  const [map, code] = ['.map', '.mjs'].map((end) => outputFiles.find(({ path }) => path.endsWith(end)))
  if (map === undefined || code === undefined) throw new Error(`esbuild made nothing of ${entry}.`)
  // Another process may put the same together from other sources at this moment: each has files of its own.
  const name = hash(code.text)
  const file = join(CACHE, 'whole', `${name}.mjs`)
  const linked = code.text.replace(/sourceMappingURL=.*$/m, `sourceMappingURL=${name}.mjs.map`)
  await keep(`${file}.map`, map.contents)
  await keep(file, linked)
  await keep(`${placeOf(entry)}.json`, JSON.stringify({ file, inputs }))
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
