/**
 * Runs TypeScript sources in a child process without a build. Use: node --conditions=@botmesh/source --import <this file>.
 * Each module is loaded by itself; many processes that start at once are better run by `run-source.mjs`.
 */
import { existsSync } from 'node:fs'
import { register } from 'node:module'
import { fileURLToPath } from 'node:url'
import { isMainThread } from 'node:worker_threads'
import { transformed } from './transformed.mjs'

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
  return { format: 'module', source: await transformed(fileURLToPath(url)), shortCircuit: true }
}
