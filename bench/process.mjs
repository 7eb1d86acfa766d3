/**
 * One of the measured processes: keeps `inFlight` turns going over `chats` chats for `ms`, and notes for each turn
 * which chat, which fence, from when to when (by the machine's monotonic clock, the same for all processes), for the
 * oracle. Started by run.mjs with its job as JSON.
 */
const job = JSON.parse(process.argv[2])
const { start } = await import(`./contenders/${job.contender}.mjs`)
const contender = await start(job)

/** Small, fast and the same for all contenders. */
let seed = job.seed
const random = () => {
  seed ^= seed << 13
  seed ^= seed >>> 17
  seed ^= seed << 5
  return (seed >>> 0) / 4294967296
}
const now = () => Number(process.hrtime.bigint() / 1000n)
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

const keys = Array.from({ length: job.chats }, (_, n) => `meta%3Atienda/${34600000000 + n}`)
const notes = new Float64Array(4 * 3_000_000)
let noted = 0
const note = (chat, fence, from, to) => {
  if (noted + 4 > notes.length) return
  notes[noted] = chat
  notes[noted + 1] = fence
  notes[noted + 2] = from
  notes[noted + 3] = to
  noted += 4
}

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
        note(chat, fence, from, to)
        turns += 1
      }
    }),
  )
  return turns
}

process.send({ ready: true })
await new Promise((resolve) => process.once('message', resolve))
await run(performance.now() + job.warmUpMs)
noted = 0
process.send({ warm: true })
const cpu = process.cpuUsage()
const began = performance.now()
const turns = await run(began + job.ms)
const tookMs = performance.now() - began
const used = process.cpuUsage(cpu)
await contender.stop()
process.send({ turns, tookMs, cpuUs: used.user + used.system, notes: notes.slice(0, noted) }, () =>
  process.disconnect(),
)
