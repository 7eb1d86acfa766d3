/**
 * Runs TypeScript sources in a child process without a build, with SWC by .swcrc, as Jest does (decorator metadata
 * included, which type stripping and esbuild lack). Use: node --conditions=@botmesh/source --import <this file>.
 * What was transformed is kept in node_modules/.cache, by content.
 *
 * For a process that is of another release, ANOTHER_RELEASE is a JSON list of [file, text, text instead].
 */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { register } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isMainThread } from 'node:worker_threads'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CACHE = join(ROOT, 'node_modules/.cache/botmesh-swc')
const CONFIG = join(ROOT, '.swcrc')
/** @type {[file: string, before: string, after: string][]} */
const CHANGES = JSON.parse(process.env['ANOTHER_RELEASE'] ?? '[]')

// The hooks run in a thread of their own, which loads this same file.
if (isMainThread) register(import.meta.url)

/** @type {import('node:module').ResolveHook} */
export async function resolve(specifier, context, next) {
  if (/^\.{1,2}\/.*\.js$/.test(specifier) && context.parentURL?.endsWith('.ts')) {
    const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL)
    if (existsSync(source)) return { url: source.href, shortCircuit: true }
  }
  return next(specifier, context)
}

/** @type {import('node:module').LoadHook} */
export async function load(url, context, next) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context)
  return { format: 'module', source: await transform(fileURLToPath(url)), shortCircuit: true }
}

/** @param {string} path */
async function transform(path) {
  const [text, config] = await Promise.all([readFile(path, 'utf8'), readFile(CONFIG, 'utf8')])
  const source = released(path, text)
  const kept = join(CACHE, `${createHash('sha256').update(`${config}\n${path}\n${source}`).digest('hex')}.js`)
  try {
    return await readFile(kept, 'utf8')
  } catch {
    // Not transformed yet.
  }
  const swc = await import('@swc/core')
  const { code } = await swc.transform(source, { filename: path, configFile: CONFIG, cwd: ROOT })
  await mkdir(CACHE, { recursive: true })
  const unfinished = `${kept}.${process.pid}`
  await writeFile(unfinished, code)
  await rename(unfinished, kept)
  return code
}

/** @param {string} path @param {string} source */
function released(path, source) {
  const here = CHANGES.filter(([file]) => path === join(ROOT, file))
  return here.reduce((text, [, before, after]) => text.replaceAll(before, after), source)
}
