/** (b): one turn after the other of one chat that another process wants as well, kept for `handlerMs` each time. */
import { RedisCoordinator } from '@botmesh/redis-store'

const job = JSON.parse(process.argv[2])
const coordinator = new RedisCoordinator({
  url: `redis://127.0.0.1:${job.port}`,
  prefix: job.prefix,
  replicaId: job.replica,
})
await coordinator.start()
const now = () => Number(process.hrtime.bigint() / 1000n)
const notes = []
process.send({ ready: true })
await new Promise((resolve) => process.once('message', resolve))
const until = performance.now() + job.ms
while (performance.now() < until) {
  const turn = await coordinator.turns.take('contended', { waitMs: 10_000 })
  const from = now()
  await new Promise((resolve) => setTimeout(resolve, job.handlerMs))
  const to = now()
  notes.push({ n: turn.fence, from, to })
  await turn.release()
}
await coordinator.stop()
process.send({ notes }, () => process.disconnect())
