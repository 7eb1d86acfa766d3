/**
 * The benchmarks (a)–(k) and (p): ratios within one run, medians of interleaved rounds on one private Redis, each
 * turn looked at by an oracle. Needs `npm run build` and a `redis-server`.
 *
 *   node bench/run.mjs [--rounds 5] [--ms 3000] [--only a,…,k,p] [--json file] [--anywhere]
 *
 * `--anywhere` leaves it to the operating system on which processors Redis and the measured processes run; without it
 * Redis has one of its own (placement.mjs says why).
 */
import { writeFile } from 'node:fs/promises'
import { cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { placeAnywhere, placeApart } from './placement.mjs'
import { startRedis } from './private-redis.mjs'
import { launch, measureTurns } from './processes.mjs'
import { idleCalls, idleMemory } from './idle-memory.mjs'
import { locks } from './locks.mjs'
import { parsing } from './parsing.mjs'
import { sqlSteps } from './sql-steps.mjs'
import { durability, wholeMessages } from './whole-messages.mjs'

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    ms: { type: 'string', default: '3000' },
    only: { type: 'string', default: 'a,b,c,d,e,f,g,h,i,j,k,p' },
    json: { type: 'string' },
    anywhere: { type: 'boolean', default: false },
  },
})
const rounds = Number(options.rounds)
const ms = Number(options.ms)
const pause = (time) => new Promise((resolve) => setTimeout(resolve, time))

const sorted = (numbers) => [...numbers].sort((a, b) => a - b)
const quantile = (numbers, q) => sorted(numbers)[Math.min(numbers.length - 1, Math.floor(q * numbers.length))]
const median = (numbers) => quantile(numbers, 0.5)

const verdicts = []
/** Notes a requirement: `value` has to be `relation` `limit`. */
function require(name, value, relation, limit, unit = '') {
  const holds = relation === '>=' ? value >= limit : value <= limit
  verdicts.push({ name, value, relation, limit, holds })
  console.log(
    `  ${holds ? 'ok  ' : 'MISS'} ${name}: ${value.toFixed(2)}${unit} (${relation} ${limit}${unit})`,
  )
}

/** Notes what was seen where no limit was set. */
function seen(name, value) {
  verdicts.push({ name, value })
  console.log(`  seen ${name}: ${value.toFixed(2)}`)
}

/** Rounds of several contenders, one after the other, so that all meet the same weather. */
async function interleave(server, jobs, processes) {
  const results = jobs.map(() => [])
  for (let round = 0; round < rounds; round += 1) {
    for (const [n, job] of jobs.entries()) {
      const result = await measureTurns(
        server,
        { prefix: `b${round}`, handlerMs: 0, warmUpMs: 5000, ms, ...job },
        processes,
      )
      results[n].push(result)
      const { overlaps, disorders } = result
      // Plain script calls exclude nobody; whoever claims to must.
      if (job.contender !== 'raw2' && overlaps > 0)
        throw new Error(`${job.contender}: ${overlaps} overlapping turns`)
      if (job.contender === 'botmesh' && disorders > 0)
        throw new Error(`botmesh: ${disorders} turns out of order`)
    }
  }
  for (const [n, job] of jobs.entries()) {
    const all = results[n]
    const show = (name, digits) => median(all.map((one) => one[name])).toFixed(digits)
    const label = `${job.contender}${job.mode ? ` ${job.mode}` : ''}`.padEnd(18)
    console.log(
      `  ${label} ${show('rate', 0).padStart(7)} turns/s  Redis ${show('redisUs', 1)} µs, clients ${show('clientUs', 1)} µs, script calls ${show('scriptCalls', 3)} a turn`,
    )
  }
  /** Median over the rounds of the ratio within each round. */
  return (a, b) => median(results[a].map((one, round) => one.rate / results[b][round].rate))
}

const benchmarks = {
  async a(server) {
    console.log('(a) two processes, 10,000 chats, 64 turns in flight each')
    const many = { chats: 10_000, inFlight: 64 }
    const ratio = await interleave(server, [
      { contender: 'raw2', ...many },
      { contender: 'botmesh', mode: 'full', ...many },
      { contender: 'botmesh', mode: 'plain', ...many },
      { contender: 'redis-semaphore', ...many },
      { contender: 'redlock', ...many },
    ])
    require('(a) full / raw2', ratio(1, 0), '>=', 1.5)
    require('(a) without inbound id / raw2', ratio(2, 0), '>=', 2)
    require('(a) full / redis-semaphore', ratio(1, 3), '>=', 2)
    require('(a) full / redlock', ratio(1, 4), '>=', 3)
    console.log('(a) one process, one turn in flight')
    const one = { chats: 10_000, inFlight: 1 }
    const single = await interleave(
      server,
      [
        { contender: 'raw2', ...one },
        { contender: 'botmesh', mode: 'full', ...one },
      ],
      1,
    )
    require('(a) one in flight: full / raw2', single(1, 0), '>=', 0.8)
  },

  async b(server) {
    console.log('(b) one contended chat, two processes, handler of 2 ms')
    const measured = { push: [], botmesh: [] }
    const p99s = { push: [], botmesh: [] }
    for (let round = 0; round < rounds; round += 1) {
      for (const kind of ['push', 'botmesh']) {
        await server.admin.flushall()
        const script = kind === 'push' ? 'push-process.mjs' : 'handoff-process.mjs'
        const children = [0, 1].map((n) =>
          launch(script, {
            port: server.port,
            prefix: `h${round}`,
            replica: `replica-${n}`,
            first: n === 0,
            handlerMs: 2,
            ms,
          }),
        )
        await Promise.all(children.map((child) => child.next('ready')))
        children.toReversed().forEach((child) => child.go())
        const notes = (await Promise.all(children.map((child) => child.next('notes')))).flatMap(
          (one, process) => one.notes.map((note) => ({ ...note, process })),
        )
        await Promise.all(children.map((child) => child.gone()))
        notes.sort((x, y) => x.n - y.n)
        const times = []
        for (let n = 1; n < notes.length; n += 1) {
          if (notes[n].from < notes[n - 1].to) throw new Error(`${kind}: turns overlap`)
          if (notes[n].process !== notes[n - 1].process) times.push(notes[n].from - notes[n - 1].to)
        }
        const settled = times.slice(Math.floor(times.length / 5))
        measured[kind].push(median(settled))
        p99s[kind].push(quantile(settled, 0.99))
      }
    }
    for (const kind of ['push', 'botmesh']) {
      console.log(`  ${kind.padEnd(8)} median ${median(measured[kind])} µs, p99 ${median(p99s[kind])} µs`)
    }
    const ratio = (of) => median(of.botmesh.map((value, round) => value / of.push[round]))
    require('(b) hand-off median / raw-push', ratio(measured), '<=', 1.5)
    require('(b) hand-off p99 / raw-push', ratio(p99s), '<=', 2.5)
  },

  async c(server) {
    console.log('(c) 50 contended chats, two processes, 64 turns in flight each')
    const few = { chats: 50, inFlight: 64 }
    const ratio = await interleave(server, [
      { contender: 'redis-semaphore', ...few },
      { contender: 'botmesh', mode: 'plain', ...few },
    ])
    require('(c) botmesh / redis-semaphore', ratio(1, 0), '>=', 1.7)
  },

  async d(server) {
    for (const [held, waiting] of [
      [10_000, 1000],
      [100, 10],
    ]) {
      console.log(`(d) ${held} turns held, ${waiting} waiting, ten seconds`)
      const calls = await idleCalls(server, { held, waiting })
      require(`(d) calls a replica a lease, ${held} held`, calls, '<=', 8)
    }
  },

  async e(server) {
    const leaseMs = 5000
    const late = { alone: [], behindDead: [] }
    const early = []
    for (let round = 0; round < Math.min(rounds, 5); round += 1) {
      for (const kind of ['alone', 'behindDead']) {
        await server.admin.flushall()
        const job = { port: server.port, prefix: 'e', leaseMs, chats: 1 }
        const holder = launch('holding-process.mjs', { ...job, replica: 'holder' })
        const { incarnation } = await holder.next('granted')
        const dead = launch('holding-process.mjs', { ...job, replica: 'dead' })
        await dead.next('queued')
        const waiter = launch('holding-process.mjs', { ...job, replica: 'waiter' })
        await waiter.next('queued')
        await pause(Math.random() * 2000)
        if (kind === 'behindDead') dead.child.kill('SIGKILL')
        const left = await server.admin.pttl(`e:{0}:s:${incarnation}`)
        const killed = Number(process.hrtime.bigint() / 1000n)
        holder.child.kill('SIGKILL')
        const first = kind === 'behindDead' ? waiter : dead
        const { granted } = await first.next('granted')
        const tookMs = (granted - killed) / 1000
        late[kind].push(tookMs / leaseMs)
        early.push(tookMs - left)
        for (const child of [dead, waiter]) child.child.kill('SIGKILL')
        await Promise.all([holder, dead, waiter].map((child) => child.gone()))
      }
    }
    console.log('(e) holder killed, leaseMs 5 s')
    require('(e) next grant after the kill, in leases', Math.max(...late.alone), '<=', 1.05)
    require('(e) with a dead waiter in line, in leases', Math.max(...late.behindDead), '<=', 1.07)
    require('(e) after the end of the dead session, at least', Math.min(...early), '>=', -1, ' ms')
  },

  async f(server) {
    console.log(
      '(f) turn with checkpoint read and fenced write of 400 bytes, two processes, 64 in flight each',
    )
    const many = { chats: 10_000, inFlight: 64 }
    const ratio = await interleave(server, [
      { contender: 'botmesh', mode: 'full', ...many },
      { contender: 'botmesh', mode: 'state', ...many },
    ])
    require('(f) with a checkpoint / without', ratio(1, 0), '>=', 0.8)
  },

  g: (server) => wholeMessages(server, { interleave, require }),
  h: (server) => durability(server, { interleave, require }),
  i: () => sqlSteps({ rounds, ms, median, note: seen }),
  j: (server) => locks(server, { interleave, require }),
  k: (server) => idleMemory(server, { require }),
  p: (server) => parsing(server, { measureTurns, rounds, ms, median, require, note: seen }),
}

console.log(
  `${cpus().length} × ${cpus()[0]?.model}, Node ${process.version}, load ${loadavg()[0].toFixed(1)}, ${rounds} rounds`,
)
let placed = ''
for (const name of options.only.split(',')) {
  placeAnywhere()
  const server = await startRedis()
  // (i) measures servers of other kinds, which it starts itself.
  const where = options.anywhere || name === 'i' ? 'wherever the system puts them' : placeApart(server.pid)
  if (where !== placed) console.log(`Processes: ${where}.`)
  placed = where
  try {
    await benchmarks[name](server)
  } finally {
    await server.stop()
  }
}
if (options.json) await writeFile(options.json, JSON.stringify(verdicts, null, 2))
const missed = verdicts.filter((one) => one.holds === false)
console.log(
  missed.length === 0
    ? 'All requirements hold.'
    : `${missed.length} of ${verdicts.length} requirements missed.`,
)
process.exitCode = missed.length === 0 ? 0 : 1
