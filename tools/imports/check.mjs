/**
 * The import rules, over a set of files given as text, so that the rules themselves can be tested.
 * Each finding says where, which rule, and what to do instead.
 */
import { builtinModules } from 'node:module'
import { posix } from 'node:path'
import { findCycles } from './cycles.mjs'
import { checkKernel } from './kernel.mjs'
import { parse, readImports } from './read.mjs'
import { BARE_ROOMS, CORE_DOORS, CORE_ROOMS, FREE_FOLDERS, PACKAGE_EDGES, RELATIVE_DOORS } from './rooms.mjs'

/**
 * @typedef {object} Finding
 * @property {string} file
 * @property {number} line
 * @property {string} rule
 * @property {string} fix
 *
 * @typedef {object} Manifest what is used of a package.json
 * @property {string} [name]
 * @property {Record<string, unknown>} [exports]
 * @property {Record<string, string>} [dependencies]
 * @property {Record<string, string>} [peerDependencies]
 * @property {Record<string, string>} [devDependencies]
 * @property {Record<string, string>} [optionalDependencies]
 *
 * @typedef {object} Workspace
 * @property {Map<string, string>} files path from the root, with slashes → text
 * @property {Map<string, Manifest>} manifests folder (`.` for the root) → package.json
 */

/**
 * @param {Workspace} workspace
 * @returns {Finding[]}
 */
export function checkImports(workspace) {
  /** @type {Finding[]} */
  const findings = []
  /** @type {Map<string, Array<{ to: string, line: number }>>} */
  const graph = new Map()
  for (const [path, text] of workspace.files) {
    const file = parse(path, text)
    const place = placeOf(path, workspace)
    /** @type {Array<{ to: string, line: number }>} */
    const edges = []
    for (const one of readImports(file)) {
      const target = resolve(path, one.specifier, workspace)
      const problem = one.specifier.startsWith('.')
        ? checkRelative(place, one, target)
        : checkPackage(place, one, workspace)
      if (problem !== undefined) findings.push({ file: path, line: one.line, ...problem })
      if (workspace.files.has(target)) edges.push({ to: target, line: one.line })
    }
    graph.set(path, edges)
    if (place.room === 'kernel') findings.push(...checkKernel(path, file))
  }
  for (const cycle of findCycles(graph)) {
    const [first] = cycle
    if (first === undefined) continue
    const way = cycle.map(({ from, line }) => `${from}:${line}`).join(' → ')
    const fix = 'move what both need into a file of its own that imports neither'
    findings.push({ file: first.from, line: first.line, rule: `import cycle: ${way} → ${first.from}`, fix })
  }
  return findings
}

/** @typedef {{ path: string, folder: string, manifest: Manifest, inSource: boolean, room: string | undefined }} Place */

/**
 * @param {string} path
 * @param {Workspace} workspace
 * @returns {Place}
 */
function placeOf(path, workspace) {
  const [top = '', second = '', third = ''] = path.split('/')
  const folder = top === 'libs' || top === 'apps' ? `${top}/${second}` : top
  const manifest = workspace.manifests.get(folder) ?? {}
  const inSource = third === 'src' && (top === 'libs' || top === 'apps')
  return { path, folder, manifest, inSource, room: roomOf(path) }
}

/** @param {string} path the room of core it lies in */
function roomOf(path) {
  return /^libs\/core\/src\/([^/]+)\//.exec(path)?.[1]
}

/**
 * @param {Place} place
 * @param {import('./read.mjs').Import} one
 * @param {string} target
 */
function checkRelative(place, one, target) {
  const home = place.inSource ? `${place.folder}/src/` : `${place.folder}/`
  if (!target.startsWith(home)) {
    if (RELATIVE_DOORS.some(({ from, to }) => from.test(place.path) && to.test(target))) return undefined
    if (place.inSource && target === `${place.folder}/package.json`) return undefined
    return {
      rule: `"${one.specifier}" leaves ${home}`,
      fix: 'import the other package by its name and export there what is needed',
    }
  }
  return checkRooms(place, one, target)
}

/**
 * @param {Place} place
 * @param {import('./read.mjs').Import} one
 * @param {string} target
 */
function checkRooms(place, one, target) {
  const to = roomOf(target)
  if (place.room === undefined || to === place.room) return undefined
  const allowed = CORE_ROOMS[place.room]
  if (allowed === undefined) {
    return {
      rule: `core has no room "${place.room}"`,
      fix: 'put the file into one of its rooms (tools/imports/rooms.mjs)',
    }
  }
  if (to !== undefined && (allowed === 'all' || allowed.includes(to))) return undefined
  const room = place.room
  const door = CORE_DOORS.find(({ from, file }) => from.includes(room) && `libs/core/src/${file}` === target)
  if (door !== undefined && (door.typesOnly !== true || one.typesOnly)) return undefined
  const list = allowed === 'all' ? 'the other rooms' : allowed.join(' and ') || 'nothing'
  return {
    rule: `core/${room} may import only ${list}, not ${target.replace('libs/core/src/', '')}`,
    fix:
      door === undefined
        ? 'declare what it needs in contracts/ and let bot/ pass it in'
        : 'use `import type`: only types may pass here',
  }
}

/**
 * @param {Place} place
 * @param {import('./read.mjs').Import} one
 * @param {Workspace} workspace
 */
function checkPackage(place, one, workspace) {
  const { specifier } = one
  if (specifier.startsWith('node:')) return undefined // The kernel's own check refuses these.
  if (builtinModules.includes(specifier)) {
    return { rule: `"${specifier}" is a module of Node without its prefix`, fix: `write "node:${specifier}"` }
  }
  const name = packageNameOf(specifier)
  if (place.room !== undefined && BARE_ROOMS.includes(place.room)) {
    return {
      rule: `core/${place.room} imports no package, not even "${name}"`,
      fix: 'describe the shape here instead',
    }
  }
  return name.startsWith('@botmesh/')
    ? checkOwnPackage(place, specifier, name, workspace)
    : checkDeclared(place, name, workspace)
}

/**
 * @param {Place} place
 * @param {string} specifier
 * @param {string} name
 * @param {Workspace} workspace
 */
function checkOwnPackage(place, specifier, name, workspace) {
  const theirs = [...workspace.manifests.values()].find((one) => one.name === name)
  const inside = `.${specifier.slice(name.length)}`
  if (theirs !== undefined && !Object.hasOwn(theirs.exports ?? { '.': '' }, inside)) {
    return {
      rule: `"${specifier}" reaches into ${name}`,
      fix: `import what its package.json exports: ${Object.keys(theirs.exports ?? {}).join(', ')}`,
    }
  }
  if (FREE_FOLDERS.includes(place.folder.split('/')[0] ?? '')) return undefined
  const own = place.manifest.name ?? ''
  if (name === own) {
    if (!place.inSource) return undefined
    return { rule: `${own} imports itself by its name`, fix: 'use a relative path' }
  }
  const allowed = PACKAGE_EDGES[own] ?? []
  if (allowed.includes(name)) return undefined
  if (name === '@botmesh/core' && own !== name) return undefined
  const list = own === '@botmesh/core' ? 'none of our packages' : ['@botmesh/core', ...allowed].join(' and ')
  const fix = place.inSource
    ? 'pass it in as an instance through a contract of @botmesh/core'
    : 'a test of several packages belongs into test/'
  return { rule: `${own} may import ${list}, not ${name}`, fix }
}

/**
 * @param {Place} place
 * @param {string} name
 * @param {Workspace} workspace
 */
function checkDeclared(place, name, workspace) {
  const root = workspace.manifests.get('.') ?? {}
  const { dependencies, peerDependencies, optionalDependencies, devDependencies } = place.manifest
  const declared = { ...dependencies, ...peerDependencies, ...optionalDependencies }
  const usable = place.inSource ? declared : { ...declared, ...devDependencies, ...root.devDependencies }
  // What needs several packages may use what any of them declares.
  if (place.folder === 'test' || place.folder === 'bench') {
    for (const one of workspace.manifests.values())
      Object.assign(usable, one.dependencies, one.devDependencies)
  }
  if (Object.hasOwn(usable, name)) return undefined
  return {
    rule: `"${name}" is not a declared dependency of ${place.folder}`,
    fix: `add it to ${place.inSource ? `${place.folder}/package.json` : 'package.json'} and docs/dependencies.md, or do without`,
  }
}

/** @param {string} specifier */
function packageNameOf(specifier) {
  const [first = '', second = ''] = specifier.split('/')
  return first.startsWith('@') ? `${first}/${second}` : first
}

/**
 * The file that an import means; for one outside the workspace, something that is no file of it.
 * @param {string} from
 * @param {string} specifier
 * @param {Workspace} workspace
 */
function resolve(from, specifier, { files, manifests }) {
  if (!specifier.startsWith('.')) {
    for (const [folder, { name, exports = {} }] of manifests) {
      if (name === undefined || !specifier.startsWith(name)) continue
      const target = exports[`.${specifier.slice(name.length)}`]
      const source = typeof target === 'object' && target !== null ? Object.values(target)[0] : undefined
      if (typeof source === 'string') return posix.join(folder, source)
    }
    return specifier
  }
  const path = posix.join(posix.dirname(from), specifier)
  const source = path.replace(/\.js$/, '.ts')
  return files.has(source) ? source : path
}
