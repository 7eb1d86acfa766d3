/** raw-push: a token published back and forth between two processes, kept for `handlerMs` each time. The floor of (b). */
import { Redis } from 'ioredis'

const job = JSON.parse(process.argv[2])
const redis = new Redis(job.port, '127.0.0.1')
const subscriber = new Redis(job.port, '127.0.0.1')
const [mine, theirs] = job.first ? ['ping', 'pong'] : ['pong', 'ping']
const now = () => Number(process.hrtime.bigint() / 1000n)
const notes = []
let over = false

/** Keeps the token for as long as a handler runs, then passes it on. */
const pass = (n) => {
  const from = now()
  setTimeout(() => {
    notes.push({ n, from, to: now() })
    if (!over) void redis.publish(theirs, String(n + 1))
  }, job.handlerMs)
}
subscriber.on('message', (_, text) => pass(Number(text)))
await subscriber.subscribe(mine)
process.send({ ready: true })
await new Promise((resolve) => process.once('message', resolve))
if (job.first) pass(0)
setTimeout(() => {
  over = true
  setTimeout(() => {
    process.send({ notes }, () => process.disconnect())
    redis.disconnect()
    subscriber.disconnect()
  }, 100)
}, job.ms)
