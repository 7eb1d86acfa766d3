/**
 * A process whose chats speak once: takes and commits `chats` turns, each with an id of its own, and tells what its heap
 * and Redis hold before, at the most, and after all windows have passed; with `remember`, before any has. Run with
 * --expose-gc.
 */
import { Redis } from 'ioredis'
import { RedisStore } from '@botmesh/redis-store'

const { port, prefix, chats, warmUp, dedupeMs, leaseMs, remember } = JSON.parse(process.argv[2])
const IN_FLIGHT = 256
const admin = new Redis(port, '127.0.0.1')
const store = new RedisStore({ url: `redis://127.0.0.1:${port}`, prefix, dedupeMs })
const coordinator = store.coordinator({ leaseMs, replicaId: 'once' })
await coordinator.start()
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function speak(from, to) {
  let next = from
  const lanes = Array.from({ length: IN_FLIGHT }, async () => {
    while (next < to) {
      const n = next
      next += 1
      const turn = await coordinator.turns.take(`meta%3Atienda/${n}`, { waitMs: 60_000, dedupeId: `m${n}` })
      const done = await turn.commit({ inboundId: `m${n}` })
      if (done.outcome !== 'committed') throw new Error(done.why)
    }
  })
  await Promise.all(lanes)
}

async function look() {
  globalThis.gc()
  globalThis.gc()
  // Redis keeps a histogram of times, 24 KiB, for each command that was ever called: by whom and for what is not ours.
  await admin.config('RESETSTAT')
  const info = await admin.info('memory')
  return {
    redisBytes: Number(/used_memory:(\d+)/.exec(info)?.[1]),
    keys: await admin.dbsize(),
    heapBytes: process.memoryUsage().heapUsed,
  }
}

/** Until as many keys are there as `keys`, but for the windows of now. */
async function settled(keys) {
  const deadline = performance.now() + 4 * dedupeMs + 4 * leaseMs
  while ((await admin.dbsize()) > keys && performance.now() < deadline) await pause(250)
  await pause(2 * leaseMs)
}

// Code, buffers and the like have their size afterwards.
await speak(0, warmUp)
if (!remember) await pause(2 * dedupeMs + 2 * leaseMs)
const before = await look()
await speak(warmUp, warmUp + chats)
const most = await look()
if (!remember) await settled(before.keys)
const after = await look()
await coordinator.stop()
await store.close()
await admin.quit()
process.send({ looks: { before, most, after } }, () => process.disconnect())
