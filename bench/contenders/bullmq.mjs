/**
 * BullMQ: one queue for all chats, a worker in each process. Groups (one job of a chat at a time) are in its commercial
 * edition; a queue and a worker for each of 10,000 chats would be another experiment. So this one does not exclude.
 */
import { Queue, Worker } from 'bullmq'

export async function start({ port, prefix, inFlight, handle }) {
  const shared = { prefix, connection: { host: '127.0.0.1', port } }
  const queue = new Queue('turns', {
    ...shared,
    defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
  })
  const worker = new Worker('turns', (job) => handle(job.data), {
    ...shared,
    concurrency: inFlight,
    autorun: false,
  })
  for (const one of [queue, worker]) one.on('error', fail)
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()])
  let ending = false
  function fail(error) {
    if (!ending) throw error
  }
  return {
    enqueue: (_key, message) => queue.add('turn', message),
    work: () => void worker.run(),
    async stop() {
      ending = true
      await worker.close(true)
      await queue.close()
    },
  }
}
