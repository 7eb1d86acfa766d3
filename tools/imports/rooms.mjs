/**
 * Who may import whom: the table of the architecture (docs/architecture), as data. `check.mjs` enforces it.
 */

/**
 * Rooms of `@botmesh/core`: the folders of its src, and what each may import besides itself.
 * @type {Record<string, string[] | 'all'>}
 */
export const CORE_ROOMS = {
  contracts: [],
  kernel: ['contracts'],
  runtime: ['contracts', 'kernel'],
  conversation: ['contracts', 'kernel'],
  scheduler: ['contracts', 'kernel'],
  memory: ['contracts', 'kernel'],
  bot: 'all',
  testing: 'all',
}

/**
 * Single files that other rooms may import too, with the reason.
 * @type {Array<{ from: string[], file: string, typesOnly?: boolean, why: string }>}
 */
export const CORE_DOORS = [
  {
    from: ['runtime'],
    file: 'conversation/port.ts',
    typesOnly: true,
    why: 'the runtime drives conversations through this port; bot/ plugs the two together',
  },
  {
    from: ['memory'],
    file: 'runtime/session-coordinator.ts',
    why: 'memory is a driver like any other, and drivers run this over a backend of their own',
  },
  {
    from: ['memory'],
    file: 'runtime/coordination-backend.ts',
    why: 'the same: the port that a driver implements',
  },
  {
    from: ['memory', 'conversation', 'scheduler'],
    file: 'runtime/system-clock.ts',
    why: 'the default of a Clock that may be passed in',
  },
]

/** Rooms whose code may import no third-party package at all. */
export const BARE_ROOMS = ['contracts']

/**
 * What the kernel may not touch, since it decides from (state, event, now) alone.
 * @type {Record<string, string>}
 */
export const KERNEL_BANNED_NAMES = {
  Date: 'take `now` as an argument',
  setTimeout: 'return an effect that says when to wake up',
  setInterval: 'return an effect that says when to wake up',
  setImmediate: 'return an effect',
  queueMicrotask: 'return an effect',
  performance: 'take `now` as an argument',
  process: 'take what is needed as an argument',
  Promise: 'decide at once; loops in runtime/ do the waiting',
  fetch: 'return an effect',
  crypto: 'take random values as arguments',
}

/**
 * Packages among our own that a package may import besides `@botmesh/core`.
 * @type {Record<string, string[]>}
 */
export const PACKAGE_EDGES = {
  '@botmesh/core': [],
  '@botmesh/postgres-store': ['@botmesh/sql-store'],
  '@botmesh/mysql-store': ['@botmesh/sql-store'],
  '@botmesh/sqlite-store': ['@botmesh/sql-store'],
  '@botmesh/messenger': ['@botmesh/meta'],
  '@botmesh/instagram': ['@botmesh/meta'],
}

/** Top folders beside libs/ whose files may import any package of ours, by its name. */
export const FREE_FOLDERS = ['apps', 'test', 'bench', 'tools', 'docker', 'examples']

/**
 * Relative ways out of a top folder that are allowed.
 * @type {Array<{ from: RegExp, to: RegExp }>}
 */
export const RELATIVE_DOORS = [
  { from: /^(libs|apps)\/[^/]+\/test\//, to: /^test\/(support|doubles)\// },
  { from: /^(libs|apps)\/[^/]+\/test\//, to: /^tools\// },
  { from: /^(test|bench)\//, to: /^tools\// },
  { from: /^examples\//, to: /^test\/(support|doubles)\// },
  { from: /^(bench|tools)\//, to: /^test\/(support|doubles)\// },
  // The demo and the benchmarks start applications, which are no packages.
  { from: /^(test|bench|tools)\//, to: /^apps\/[^/]+\/(src|test)\// },
]
