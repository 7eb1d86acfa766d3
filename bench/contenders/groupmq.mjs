/** GroupMQ: one queue, a group for each chat, a worker in each process. */
import { Redis } from 'ioredis'
import { Queue, Worker } from 'groupmq'

export async function start({ port, prefix, inFlight, handle }) {
  const redis = new Redis(port, '127.0.0.1', { maxRetriesPerRequest: null })
  const queue = new Queue({ redis, namespace: prefix })
  let worker
  return {
    enqueue: (key, message) => queue.add({ groupId: key, data: message }),
    /** It works from its construction on. */
    work() {
      worker = new Worker({ queue, concurrency: inFlight, handler: (job) => handle(job.data) })
    },
    async stop() {
      await worker.close(0)
      redis.disconnect()
    },
  }
}
