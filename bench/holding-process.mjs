/** (d), (e): takes the turns it is told to, says when it has which, and keeps them until it is told to stop. */
import { RedisCoordinator } from '@botmesh/redis-store'

const job = JSON.parse(process.argv[2])
const coordinator = new RedisCoordinator({
  url: `redis://127.0.0.1:${job.port}`,
  prefix: job.prefix,
  leaseMs: job.leaseMs,
  replicaId: job.replica,
})
await coordinator.start()
const now = () => Number(process.hrtime.bigint() / 1000n)
let queued = 0
const takes = Array.from({ length: job.chats }, (_, n) =>
  coordinator.turns.take(`chat-${n}`, {
    waitMs: 120_000,
    onTicket: () => {
      queued += 1
      if (queued === job.chats) process.send({ queued: true })
    },
  }),
)
void Promise.all(takes).then(
  () => process.send({ granted: now(), incarnation: coordinator.incarnation }),
  () => undefined,
)
process.send({ ready: coordinator.incarnation })
await new Promise((resolve) => process.once('message', resolve))
await coordinator.stop()
process.disconnect()
