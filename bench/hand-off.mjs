/**
 * (b) hand-off latency: how long after one process is done with a contended chat the other one begins. What is measured
 * with a limit is ours beside raw-push, a token published back and forth; the locks of others follow in rounds of their
 * own, by the same clock.
 */
import { NOTE } from './oracle.mjs'
import { hold } from './contenders.mjs'
import { attempt } from './interleave.mjs'
import { launch, measureTurns } from './processes.mjs'
import { median, quantile, spread } from './statistics.mjs'

const RIVALS = ['redis-semaphore', 'redlock', 'redlock-universal', 'groupmq']

export async function handOff(run) {
  const { record, rounds } = run
  const found = new Map(['raw-push', 'botmesh', ...RIVALS].map((name) => [name, { medians: [], p99s: [] }]))
  const add = (name, times) => {
    // Where the other process is as good as never next, there is nothing to say of hand-offs.
    if (times.length < 5) {
      if (name === 'raw-push' || name === 'botmesh')
        throw new Error(`${name}: only ${times.length} hand-offs`)
      return
    }
    found.get(name).medians.push(median(times))
    found.get(name).p99s.push(quantile(times, 0.99))
  }
  for (let round = 0; round < rounds; round += 1) {
    add('raw-push', await between(run, 'push-process.mjs', `h${round}`))
    add('botmesh', await between(run, 'handoff-process.mjs', `h${round}`))
    for (const rival of RIVALS) {
      const job = { title: 'hand-off', contender: rival, round, rounds }
      add(rival, (await attempt(record, job, () => betweenTurns(run, rival, `h${round}`))) ?? [])
    }
  }
  const seen = [...found].filter(([, { medians }]) => medians.length > 0)
  const rows = (what) =>
    seen.map(([label, one]) => ({ label, ours: label === 'botmesh', ...spread(one[what]) }))
  record.figures('hand-off, median', 'µs', rows('medians'))
  record.figures('hand-off, 99 of 100 within', 'µs', rows('p99s'))
  const ratio = (what) =>
    median(found.get('botmesh')[what].map((value, round) => value / found.get('raw-push')[what][round]))
  record.require('(b) hand-off median / raw-push', ratio('medians'), '<=', 1.5)
  record.require('(b) hand-off p99 / raw-push', ratio('p99s'), '<=', 2.5)
}

/** Two processes of `script` that take turns at one chat. They begin cold, and are warm when it counts, as in the others. */
async function between({ server, ms, warmUpMs }, script, prefix) {
  await server.admin.flushall()
  const children = [0, 1].map((n) =>
    launch(script, {
      ...{ port: server.port, prefix, replica: `replica-${n}` },
      ...{ first: n === 0, handlerMs: 2, ms: warmUpMs + ms },
    }),
  )
  await Promise.all(children.map((child) => child.next('ready')))
  children.toReversed().forEach((child) => child.go())
  const found = await Promise.all(children.map((child) => child.next('notes')))
  await Promise.all(children.map((child) => child.gone()))
  const turns = found.flatMap(({ notes }, process) => notes.map((note) => ({ ...note, process })))
  turns.sort((a, b) => a.n - b.n)
  for (let n = 1; n < turns.length; n += 1)
    if (turns[n].from < turns[n - 1].to) throw new Error(`${script}: turns overlap`)
  return handOffs(turns, warmUpMs / (warmUpMs + ms))
}

/** The same of a contender of the other benchmarks: one chat, one turn in flight in each of two processes. */
async function betweenTurns({ server, ms, warmUpMs }, contender, prefix) {
  const job = { contender, prefix, chats: 1, inFlight: 1, handlerMs: 2, warmUpMs, ms }
  const result = await measureTurns(server, job)
  hold(contender, result)
  const turns = []
  for (const [process, notes] of result.notes.entries())
    for (let at = 0; at < notes.length; at += NOTE)
      turns.push({ process, from: notes[at + 3], to: notes[at + 4] })
  return handOffs(
    turns.sort((a, b) => a.from - b.from),
    0,
  )
}

/** Times from one process's end to the other's beginning, in µs. @param cold share of the first ones that do not count. */
function handOffs(turns, cold) {
  const times = []
  for (let n = 1; n < turns.length; n += 1) {
    if (turns[n].process !== turns[n - 1].process) times.push(turns[n].from - turns[n - 1].to)
  }
  return times.slice(Math.floor(times.length * cold))
}
