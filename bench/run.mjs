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
import { keep, Record } from './record.mjs'
import { idle, recovery } from './recovery.mjs'
import { writeReport } from './report.mjs'
import { median } from './statistics.mjs'
import { storeSteps } from './store-steps.mjs'
import { commit, contended, throughput } from './turns.mjs'
import { durability, wholeMessages } from './whole-messages.mjs'

/** What each one is called, and what measures it. */
const BENCHMARKS = {
  a: ['throughput: turns on 10,000 chats', throughput],
  b: ['hand-off: one contended chat, two processes, handler of 2 ms', handOff],
  c: ['contended throughput: turns on 50 chats', contended],
  d: ['idle cost: an idle mesh for ten seconds, leases of 3 s', idle],
  e: ['recovery: the holder of a turn is killed, leases of 5 s', recovery],
  f: ['cost of the commit: a checkpoint of 400 bytes, an inbound id, neither', commit],
  g: ['whole messages through Bot', wholeMessages],
  h: ['cost of durability: a persistent flow step with one send', durability],
  i: ['cost of each store: a persistent step / two plain statements of its driver', storeSteps],
  j: ['fenced locks: acquired and released, 10,000 names', locks],
  k: ['memory: chats that spoke once, turns that wait; dedupeMs 10 s, leaseMs 1 s', idleMemory],
  p: [
    'reading what platforms deliver / handling messages through Bot, on Redis, 64 in flight',
    ({ server, record, rounds, ms }) =>
      parsing(server, {
        ...{ measureTurns, rounds, ms, median },
        require: record.require.bind(record),
        note: record.note.bind(record),
      }),
  ],
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

/** The command that measures this one again in the same way. */
const commandOf = (letter) =>
  `node bench/run.mjs --only ${letter} --rounds ${rounds} --ms ${ms}${warmUpMs === 5000 ? '' : ` --warm-up ${warmUpMs}`}${options.anywhere ? ' --anywhere' : ''}`

async function measure(letter) {
  const [title, benchmark] = BENCHMARKS[letter]
  placeAnywhere()
  const server = await startRedis()
  try {
    // (i) measures servers of other kinds, which it starts itself.
    const placed =
      options.anywhere || letter === 'i' ? 'wherever the system puts them' : placeApart(server.pid)
    const record = new Record(letter, title)
    console.log(`  processes: ${placed}`)
    const loads = [loadavg()[0]]
    const run = { server, record, rounds, ms, warmUpMs }
    const at = new Date().toISOString()
    await benchmark({ ...run, interleave: interleaveFor(run) })
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
const verdicts = []
for (const letter of letters) {
  const entry = await measure(letter)
  verdicts.push(...entry.verdicts.filter(({ holds }) => holds !== undefined))
  if (options.json) await keep(options.json, entry)
}
if (options.report) await writeReport(options.json)
const missed = verdicts.filter(({ holds }) => !holds)
console.log(
  missed.length === 0
    ? 'All requirements hold.'
    : `${missed.length} of ${verdicts.length} requirements missed.`,
)
process.exitCode = missed.length === 0 ? 0 : 1
