/** Starts the measured processes together and collects what they found. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { CONTENDERS } from './contenders.mjs'
import { judge } from './oracle.mjs'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))

/** A process that says `ready`, waits for `go`, and then sends messages. */
export function launch(script, job, execArgv = []) {
  const child = fork(here(script), [JSON.stringify(job)], {
    serialization: 'advanced',
    execArgv: [...process.execArgv, ...execArgv],
  })
  const messages = []
  let wake = () => undefined
  child.on('message', (message) => {
    messages.push(message)
    wake()
  })
  child.on('exit', (code) => {
    if (code) process.exitCode = 1
    wake()
  })
  return {
    child,
    go: (message = 'go') => child.send(message),
    /** The next message that has `name`. */
    async next(name) {
      for (;;) {
        const at = messages.findIndex((message) => name in message)
        if (at >= 0) return messages.splice(at, 1)[0]
        if (child.exitCode !== null || child.signalCode !== null)
          throw new Error(`${script} ended before "${name}"`)
        await new Promise((resolve) => (wake = resolve))
      }
    },
    async gone() {
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
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
  await Promise.all(children.map((child) => child.next('ready')))
  children.forEach((child) => child.go())
  await Promise.all(children.map((child) => child.next('warm')))
  const before = await server.usage()
  const results = await Promise.all(children.map((child) => child.next('turns')))
  const after = await server.usage()
  await Promise.all(children.map((child) => child.gone()))
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
