/** Starts the measured processes together and collects what they found. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { CONTENDERS } from './contenders.mjs'
import { judge } from './oracle.mjs'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))
const ROOT = new URL('../', import.meta.url)
/** What is kept of what a process writes to stderr: an error with its stack. */
const LAST_LINES = 20

/** A measured process that ended before it had done its part, or with an error. */
export class ProcessFailed extends Error {
  name = 'ProcessFailed'

  /** @param {import('node:child_process').ChildProcess} child @param {string} when @param {string} words its last ones */
  constructor(script, child, when, words) {
    const how = child.signalCode === null ? `exit code ${child.exitCode}` : `signal ${child.signalCode}`
    // Results are kept and shown to others: the folder they were measured in is no part of them.
    const said = words.replaceAll(ROOT.href, '').replaceAll(fileURLToPath(ROOT), '')
    const lines = said.split('\n').filter(Boolean).slice(-LAST_LINES)
    const reason = lines.find((line) => /^\S*Error\b/.test(line)) ?? lines.at(-1)
    super([`${script} ended ${when} with ${how}: ${reason ?? 'it said nothing'}`, ...lines].join('\n  '))
  }
}

/** A process that says `ready`, waits for `go`, and then sends messages. */
export function launch(script, job, execArgv = []) {
  const child = fork(here(script), [JSON.stringify(job)], {
    serialization: 'advanced',
    execArgv: [...process.execArgv, ...execArgv],
    stdio: ['inherit', 'inherit', 'pipe', 'ipc'],
  })
  const messages = []
  let words = ''
  let over = false
  let wake = () => undefined
  child.on('message', (message) => {
    messages.push(message)
    wake()
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    process.stderr.write(text)
    words = `${words}${text}`.slice(-10_000)
  })
  // Not `exit`, which may come while a large message is still being read.
  child.on('close', () => {
    over = true
    wake()
  })
  const failed = (when) => new ProcessFailed(script, child, when, words)
  return {
    child,
    /** To one that is gone by now it says nothing: whoever waits for its next message hears of that. */
    go: (message = 'go') => child.send(message, () => undefined),
    /** The next message that has `name`. */
    async next(name) {
      for (;;) {
        const at = messages.findIndex((message) => name in message)
        if (at >= 0) return messages.splice(at, 1)[0]
        if (over) throw failed(`before "${name}"`)
        await new Promise((resolve) => (wake = resolve))
      }
    },
    /** Once it has ended; by itself without an error, or killed by whoever launched it. */
    async gone() {
      if (!over) await once(child, 'close')
      if (child.exitCode !== 0 && !child.killed) throw failed('after its last message')
    },
  }
}

/** Runs `processes` of one contender at once; sums up, and lets the oracle look at every turn. */
export async function measureTurns(server, job, processes = 2) {
  await server.admin.flushall()
  const script = CONTENDERS[job.contender].process
  const children = Array.from({ length: processes }, (_, n) =>
    launch(script, { ...job, port: server.port, replica: `replica-${n}`, seed: 12_345 + 7919 * n }),
  )
  let before, after, results
  try {
    await Promise.all(children.map((child) => child.next('ready')))
    children.forEach((child) => child.go())
    await Promise.all(children.map((child) => child.next('warm')))
    before = await server.usage()
    results = await Promise.all(children.map((child) => child.next('turns')))
    after = await server.usage()
    await Promise.all(children.map((child) => child.gone()))
  } catch (error) {
    // Who is left would work on beside whoever is measured next.
    for (const { child } of children) child.kill('SIGKILL')
    await Promise.allSettled(children.map((child) => child.gone()))
    throw error
  }
  const turns = results.reduce((sum, one) => sum + one.turns, 0)
  const notes = results.map((one) => one.notes)
  return {
    turns,
    rate: results.reduce((sum, one) => sum + (one.turns / one.tookMs) * 1000, 0),
    redisUs: (after.cpuUs - before.cpuUs) / turns,
    clientUs: results.reduce((sum, one) => sum + one.cpuUs, 0) / turns,
    scriptCalls: (after.scripts - before.scripts) / turns,
    notes,
    unjudged: results.reduce((sum, one) => sum + one.dropped, 0),
    ...judge(notes),
  }
}
