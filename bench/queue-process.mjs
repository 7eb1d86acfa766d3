/**
 * One of the measured processes, for queues: it enqueues messages for chats and works on those that the queue gives it,
 * its own and the other's. Each begins with `inFlight` messages and enqueues another for each one that it has handled,
 * so that as many are on their way in both together as there are turns in flight in process.mjs. Counted is what was
 * handled; nothing is added for telling a producer that its message is done.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Notes } from './oracle.mjs'
import { chatNames, randomFrom } from './random.mjs'

const job = JSON.parse(process.argv[2])
const { start } = await import(`./contenders/${job.contender}.mjs`)

const random = randomFrom(job.seed)
const now = () => Number(process.hrtime.bigint() / 1000n)
const keys = chatNames(job.chats)
const notes = new Notes()
/** Where messages come from, for their order: a number of this process. */
const source = job.seed
let enqueued = 0
let handled = 0
let over = false

async function handle(message) {
  const from = now()
  if (job.handlerMs > 0) await pause(job.handlerMs)
  const to = now()
  if (over) return
  notes.add(message.chat, message.source, message.order, from, to)
  handled += 1
  void enqueue()
}

const contender = await start({ ...job, handle })

async function enqueue() {
  const chat = Math.floor(random() * job.chats)
  enqueued += 1
  await contender.enqueue(keys[chat], { chat, source, order: enqueued })
}

process.send({ ready: true })
await new Promise((resolve) => process.once('message', resolve))
await Promise.all(Array.from({ length: job.inFlight }, enqueue))
contender.work()
await pause(job.warmUpMs)
notes.clear()
handled = 0
process.send({ warm: true })
const cpu = process.cpuUsage()
const began = performance.now()
await pause(job.ms)
over = true
const tookMs = performance.now() - began
const used = process.cpuUsage(cpu)
const result = {
  turns: handled,
  tookMs,
  cpuUs: used.user + used.system,
  notes: notes.taken(),
  dropped: notes.dropped,
}
// The end of a large one is still on its way when `send` is back, and lost if the process ends or disconnects then.
await new Promise((sent) => process.send(result, sent))
await contender.stop()
process.disconnect()
