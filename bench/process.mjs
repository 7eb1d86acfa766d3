/**
 * One of the measured processes: keeps `inFlight` turns going over `chats` chats for `ms`, and notes for each turn
 * which chat, which fence, from when to when (by the machine's monotonic clock, the same for all processes), for the
 * oracle. Started by processes.mjs with its job as JSON.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Notes } from './oracle.mjs'
import { chatNames, randomFrom } from './random.mjs'

const job = JSON.parse(process.argv[2])
const { start } = await import(`./contenders/${job.contender}.mjs`)
const contender = await start(job)

const random = randomFrom(job.seed)
const now = () => Number(process.hrtime.bigint() / 1000n)
const keys = chatNames(job.chats)
const notes = new Notes()

async function run(until) {
  let turns = 0
  const work = job.handlerMs > 0 ? () => pause(job.handlerMs) : undefined
  await Promise.all(
    Array.from({ length: job.inFlight }, async () => {
      while (performance.now() < until) {
        const chat = Math.floor(random() * job.chats)
        let from = 0
        let to = 0
        const { fence } = await contender.turn(keys[chat], async () => {
          from = now()
          if (work) await work()
          to = now()
        })
        notes.add(chat, 0, fence, from, to)
        turns += 1
      }
    }),
  )
  return turns
}

process.send({ ready: true })
await new Promise((resolve) => process.once('message', resolve))
await run(performance.now() + job.warmUpMs)
notes.clear()
process.send({ warm: true })
const cpu = process.cpuUsage()
const began = performance.now()
const turns = await run(began + job.ms)
const tookMs = performance.now() - began
const used = process.cpuUsage(cpu)
await contender.stop()
process.send(
  { turns, tookMs, cpuUs: used.user + used.system, notes: notes.taken(), dropped: notes.dropped },
  () => process.disconnect(),
)
