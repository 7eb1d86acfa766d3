/**
 * `npm test`: everything that CI checks, on a machine with Node and this checkout and nothing else prepared.
 *
 *   npm test                                  all stages but "installs", which takes minutes: `npm run test:packages`
 *   npm test -- --yes                         may install missing servers through the package manager
 *   npm test -- --only=lint,jest              some stages; installing and servers come along where needed
 *   npm test -- --only=jest -- libs/core      arguments after a second `--` go to Jest
 *   npm test -- --limit=30                    minutes that Jest may take, default 25
 *
 * The last line is `N passed, N failed`: Jest's tests, and one for each other stage.
 */
import { readArguments as read } from './arguments.mjs'
import { scratchInMemory } from './scratch.mjs'
import { MissingServersError, provideServers } from './servers.mjs'
import { install } from './stages/install.mjs'
import { installs } from './stages/installs.mjs'
import { jest } from './stages/jest.mjs'
import { runQuietly, runTool } from './stages/run.mjs'

/**
 * @typedef {import('./stages/run.mjs').Outcome} Outcome
 * @typedef {{ yes: boolean, limitMs: number, jestArgs: string[], env: Record<string, string>, stop: () => Promise<void> }} Session
 * @typedef {{ name: string, run: (session: Session) => Promise<Outcome>, needs?: string[], onRequest?: boolean, alongside?: boolean }} Stage
 *   `needs`: stages without which it makes no sense, run first also if not asked for; `onRequest`: takes minutes and a
 *   registry, so it runs only where it is asked for; `alongside`: measures no time and writes nothing that another one
 *   reads, so it runs alongside the next one of the kind
 */

/** Of those that run alongside each other. */
const AT_ONCE = 2

/** @type {Stage[]} */
const STAGES = [
  { name: 'node', run: checkNode },
  { name: 'install', run: install, needs: ['node'] },
  { name: 'servers', run: servers, needs: ['node'] },
  { name: 'build', run: () => runQuietly([process.execPath, 'tools/build.mjs']), needs: ['install'] },
  {
    name: 'packages',
    run: () => runQuietly([process.execPath, 'tools/check-packages.mjs']),
    needs: ['build'],
    alongside: true,
  },
  {
    name: 'types',
    run: () => runTool('typescript/bin/tsc', '-p', 'tsconfig.json'),
    needs: ['install'],
    alongside: true,
  },
  {
    name: 'lint',
    run: () => runTool('oxlint/bin/oxlint', '--type-aware', '--deny-warnings', '--format=unix'),
    needs: ['install'],
    alongside: true,
  },
  {
    name: 'imports',
    run: () => runQuietly([process.execPath, 'tools/import-rules.mjs']),
    needs: ['install'],
    alongside: true,
  },
  {
    name: 'format',
    run: () => runTool('prettier/bin/prettier.cjs', '--check', '.'),
    needs: ['install'],
    alongside: true,
  },
  {
    name: 'jest',
    run: ({ jestArgs, env, limitMs }) => jest({ args: jestArgs, env, limitMs }),
    needs: ['install', 'servers'],
  },
  { name: 'installs', run: installs, needs: ['build'], onRequest: true },
]

/** @returns {Promise<Outcome>} */
async function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 19)) return { passed: 1, failed: 0, note: process.version }
  console.log(`Node 20.19 or later is needed; this is ${process.version}.`)
  return { passed: 0, failed: 1, note: process.version }
}

/**
 * @param {Session} session
 * @returns {Promise<Outcome>}
 */
async function servers(session) {
  const log = (/** @type {string} */ line) => console.log(`  ${line}`)
  try {
    const { env, stop } = await provideServers({ ...(session.yes ? { install: true } : {}), log })
    Object.assign(session, { env, stop })
    return { passed: 1, failed: 0 }
  } catch (error) {
    console.log(error instanceof MissingServersError ? error.message : error)
    return { passed: 0, failed: 1, note: 'see above' }
  }
}

/**
 * @param {string[]} args
 * @returns {{ session: Session, names: Set<string> }}
 */
function readArguments(args) {
  const end = args.indexOf('--')
  const own = end < 0 ? args : args.slice(0, end)
  /** @type {Session} */
  const session = {
    ...{ yes: false, limitMs: 25 * 60_000, jestArgs: end < 0 ? [] : args.slice(end + 1), env: {} },
    stop: () => Promise.resolve(),
  }
  let names = STAGES.filter(({ onRequest = false }) => !onRequest).map(({ name }) => name)
  const given = read(own, {
    yes: { kind: 'switch' },
    only: { kind: 'text', what: 'a list of stages' },
    limit: { kind: 'number', least: 1, most: 24 * 60 },
  })
  session.yes = given.yes === true
  if (given.limit !== undefined) session.limitMs = Number(given.limit) * 60_000
  if (given.only !== undefined) names = String(given.only).split(',')
  const chosen = new Set()
  for (const name of names) choose(name, chosen)
  return { session, names: chosen }
}

/**
 * @param {string} name
 * @param {Set<string>} chosen
 */
function choose(name, chosen) {
  const stage = STAGES.find((one) => one.name === name)
  if (stage === undefined)
    throw new Error(`No stage "${name}". Known: ${STAGES.map((one) => one.name).join(', ')}`)
  for (const need of stage.needs ?? []) choose(need, chosen)
  chosen.add(name)
}

/** @param {string[]} args */
async function main(args) {
  const { session, names } = readArguments(args)
  const chosen = STAGES.filter(({ name }) => names.has(name))
  /** @type {Map<string, Outcome & { ms: number }>} */
  const outcomes = new Map()
  const next = async (/** @type {Stage} */ { name, run, needs = [] }) => {
    console.log(`== ${name}`)
    const start = performance.now()
    const missing = needs.find((need) => outcomes.get(need)?.failed !== 0)
    const outcome = missing === undefined ? await run(session) : notRun(missing)
    outcomes.set(name, { ...outcome, ms: performance.now() - start })
    // What it printed may stand below the heading of one alongside it.
    if (outcome.failed > 0) console.log(`== ${name} failed`)
  }
  // Whole projects with their packages are installed in that stage: too much for memory.
  const removeScratch = names.has('installs') ? () => undefined : scratchInMemory()
  try {
    for (const group of grouped(chosen)) await eachOf(group, AT_ONCE, next)
  } finally {
    await session.stop().finally(removeScratch)
  }
  report(new Map([...outcomes].toSorted(([one], [other]) => placeOf(one) - placeOf(other))))
}

/** @param {string} name */
function placeOf(name) {
  return STAGES.findIndex((stage) => stage.name === name)
}

/**
 * Those that may run alongside each other together, every other one by itself.
 * @param {Stage[]} stages
 */
function grouped(stages) {
  /** @type {Stage[][]} */
  const groups = []
  for (const stage of stages) {
    const last = groups.at(-1)
    if (stage.alongside && last?.at(-1)?.alongside) last.push(stage)
    else groups.push([stage])
  }
  return groups
}

/**
 * @template T
 * @param {T[]} items in the order in which they begin
 * @param {number} atOnce
 * @param {(item: T) => Promise<void>} work
 */
async function eachOf(items, atOnce, work) {
  const left = [...items]
  const lane = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item)
  }
  const ends = await Promise.allSettled(Array.from({ length: atOnce }, lane))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

/**
 * @param {string} missing
 * @returns {Outcome}
 */
function notRun(missing) {
  return { passed: 0, failed: 1, note: `not run: "${missing}" failed` }
}

/** @param {Map<string, Outcome & { ms: number }>} outcomes */
function report(outcomes) {
  let passed = 0
  let failed = 0
  console.log('\nstage       seconds   passed   failed')
  for (const [name, outcome] of outcomes) {
    passed += outcome.passed
    failed += outcome.failed
    const numbers = [(outcome.ms / 1000).toFixed(1), outcome.passed, outcome.failed]
    const [seconds, good, bad] = numbers.map((value) => String(value).padStart(9))
    console.log(`${name.padEnd(10)}${seconds}${good}${bad}   ${outcome.note ?? ''}`.trimEnd())
  }
  console.log(`\n${passed} passed, ${failed} failed`)
  process.exitCode = failed > 0 ? 1 : 0
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error instanceof Error ? error.message : error)
  console.log('0 passed, 1 failed')
  process.exitCode = 1
})
