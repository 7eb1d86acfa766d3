/**
 * The benchmarks (a)–(k) and (p): ratios within one run, medians of interleaved rounds on one private Redis, each
 * turn looked at by an oracle. Needs `npm run build` and a `redis-server`.
 *
 *   node bench/run.mjs [--rounds 5] [--ms 3000] [--warm-up 5000] [--only a,…,k,p] [--json file] [--report] [--anywhere]
 *
 * `--json` keeps what was found, benchmark by benchmark, as soon as it is there: a file that exists keeps its entries of
 * other benchmarks. `--report` then writes charts and tables from that file (report.mjs says where).
 * `--anywhere` leaves it to the operating system on which processors Redis and the measured processes run; without it
 * Redis has one of its own (placement.mjs says why).
 */
import { cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { handOff } from './hand-off.mjs'
import { idleMemory } from './idle-memory.mjs'
import { interleaveFor } from './interleave.mjs'
import { locks } from './locks.mjs'
import { parsing } from './parsing.mjs'
import { placeAnywhere, placeApart } from './placement.mjs'
import { startRedis } from './private-redis.mjs'
import { measureTurns } from './processes.mjs'
import { conclude, keep, Record } from './record.mjs'
import { idle, recovery } from './recovery.mjs'
import { writeReport } from './report.mjs'
import { median } from './statistics.mjs'
import { storeSteps } from './store-steps.mjs'
import { TOPICS } from './topics.mjs'
import { commit, contended, throughput } from './turns.mjs'
import { durability, wholeMessages } from './whole-messages.mjs'

const BENCHMARKS = {
  ...{ a: throughput, b: handOff, c: contended, d: idle, e: recovery, f: commit },
  ...{ g: wholeMessages, h: durability, i: storeSteps, j: locks, k: idleMemory, p: reading },
}

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    ms: { type: 'string', default: '3000' },
    'warm-up': { type: 'string', default: '5000' },
    only: { type: 'string', default: Object.keys(BENCHMARKS).join(',') },
    json: { type: 'string' },
    report: { type: 'boolean', default: false },
    anywhere: { type: 'boolean', default: false },
  },
})
const rounds = Number(options.rounds)
const ms = Number(options.ms)
const warmUpMs = Number(options['warm-up'])
const letters = options.only.split(',')
for (const letter of letters)
  if (!(letter in BENCHMARKS))
    throw new Error(`--only: "${letter}" is none of ${Object.keys(BENCHMARKS).join(', ')}`)
if (options.report && options.json === undefined) throw new Error('--report is made from a file: add --json')

/** (p) tells its ratios one by one; together they make a chart. */
async function reading({ server, record }) {
  const require = record.require.bind(record)
  const note = record.note.bind(record)
  await parsing(server, { measureTurns, rounds, ms, median, require, note })
  const rows = record.entry.verdicts.map(({ name, value }) => ({
    ...{ label: name.replace('(p) ', '').replace(' / handled', ''), value, ours: true },
  }))
  record.figures('messages read while one is handled', 'messages', rows)
}

/**
 * (i) measures servers of other kinds, which it starts itself. In (b) no processor is short of time, but who is done with
 * the chat and who is next are busy at the same moment: sharing one processor, the first would hold the second up.
 */
const UNPLACED = new Set(['b', 'i'])

/** The command that measures this one again in the same way. */
const commandOf = (letter) =>
  `node bench/run.mjs --only ${letter} --rounds ${rounds} --ms ${ms}${warmUpMs === 5000 ? '' : ` --warm-up ${warmUpMs}`}${options.anywhere ? ' --anywhere' : ''}`

async function measure(letter) {
  placeAnywhere()
  const server = await startRedis()
  try {
    const placed =
      options.anywhere || UNPLACED.has(letter) ? 'wherever the system puts them' : placeApart(server.pid)
    const record = new Record(letter, TOPICS[letter])
    console.log(`  processes: ${placed}`)
    const loads = [loadavg()[0]]
    const run = { server, record, rounds, ms, warmUpMs }
    const at = new Date().toISOString()
    await BENCHMARKS[letter]({ ...run, interleave: interleaveFor(run) })
    loads.push(loadavg()[0])
    record.entry.conditions = {
      ...{ at, command: commandOf(letter), anywhere: options.anywhere, placed, rounds, ms, warmUpMs, loads },
      ...{ processors: cpus().length, model: cpus()[0]?.model, node: process.version },
      redis: await server.version(),
    }
    return record.entry
  } finally {
    await server.stop()
  }
}

console.log(
  `${cpus().length} × ${cpus()[0]?.model}, Node ${process.version}, load ${loadavg()[0].toFixed(1)}, ${rounds} rounds`,
)
const entries = []
const broken = []
for (const letter of letters) {
  try {
    const entry = await measure(letter)
    entries.push(entry)
    if (options.json) await keep(options.json, entry)
  } catch (error) {
    // The others are measured all the same; this one has no results, and the run has failed.
    broken.push(letter)
    console.error(`(${letter}) ended early:`, error)
  }
}
if (options.report) await writeReport(options.json)
const { lines, exitCode } = conclude(entries, broken)
for (const line of lines) console.log(line)
process.exitCode = exitCode
