/**
 * TypeScript sources as JavaScript, by SWC and .swcrc, as Jest has them (decorator metadata included, which type
 * stripping and esbuild lack). What was transformed is kept in node_modules/.cache, by content.
 *
 * For a process that is of another release, ANOTHER_RELEASE is a JSON list of [file, text, text instead].
 */
import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
export const CACHE = join(ROOT, 'node_modules/.cache/botmesh-swc')
export const CONFIG = join(ROOT, '.swcrc')
/** @type {[file: string, before: string, after: string][]} */
const CHANGES = JSON.parse(process.env['ANOTHER_RELEASE'] ?? '[]')

/** Another version may make something else of it. */
const SWC = join(ROOT, 'node_modules/@swc/core/package.json')

/** @param {string} path */
export async function transformed(path) {
  const read = (/** @type {string} */ one) => readFile(one, 'utf8')
  const [text, config, swcPackage] = await Promise.all([read(path), read(CONFIG), read(SWC)])
  const source = released(path, text)
  const kept = join(CACHE, `${hash(config, swcPackage, path, source)}.js`)
  try {
    return await readFile(kept, 'utf8')
  } catch {
    // Not transformed yet.
  }
  const swc = await import('@swc/core')
  const { code } = await swc.transform(source, { filename: path, configFile: CONFIG, cwd: ROOT })
  await keep(kept, code)
  return code
}

/** @param {string[]} parts */
export function hash(...parts) {
  return createHash('sha256').update(parts.join('\n')).digest('hex')
}

/**
 * Whole or not at all, whoever else writes it.
 * @param {string} path
 * @param {string | Uint8Array} content
 */
export async function keep(path, content) {
  await mkdir(dirname(path), { recursive: true })
  const unfinished = `${path}.${process.pid}`
  await writeFile(unfinished, content)
  await rename(unfinished, path)
}

/** @param {string} path @param {string} source */
function released(path, source) {
  const here = CHANGES.filter(([file]) => path === join(ROOT, file))
  return here.reduce((text, [, before, after]) => text.replaceAll(before, after), source)
}
