/** (k) a million chats that spoke once, and 10,000 turns that wait: what they leave behind, and what they cost (scenario 34). */
import { setTimeout as pause } from 'node:timers/promises'
import { launch } from './processes.mjs'

const CHATS = 1_000_000
const WAITING = 10_000
const MIB = 1024 * 1024

export async function idleMemory({ server, record }) {
  await server.admin.flushall()
  const job = {
    port: server.port,
    prefix: 'k',
    chats: CHATS,
    // As many as Redis needs to have taken what it keeps for itself once it has worked: with fewer the first look is too good.
    warmUp: 200_000,
    dedupeMs: 10_000,
    // Shorter ones end on a machine that is busy, in which a process stands still for most of a second.
    leaseMs: 3000,
  }
  const child = launch('spoke-once.mjs', job, ['--expose-gc'])
  const { looks } = await child.next('looks')
  await child.gone()
  for (const [name, { redisBytes, keys, heapBytes }] of Object.entries(looks)) {
    console.log(
      `  ${name.padEnd(7)} Redis ${(redisBytes / MIB).toFixed(1)} MiB in ${keys} keys, heap ${(heapBytes / MIB).toFixed(1)} MiB`,
    )
  }
  const { before, after } = looks
  const inMiB = (what) =>
    Object.entries(looks).map(([label, look]) => ({ label, value: look[what] / MIB, ours: true }))
  record.figures(`memory of Redis, ${CHATS.toLocaleString('en')} chats`, 'MiB', inMiB('redisBytes'))
  record.figures(`heap of the process, ${CHATS.toLocaleString('en')} chats`, 'MiB', inMiB('heapBytes'))
  record.require('(k) Redis after / before', after.redisBytes / before.redisBytes, '<=', 1.1)
  record.require('(k) keys after - before', after.keys - before.keys, '<=', 2)
  record.require('(k) heap after - before', (after.heapBytes - before.heapBytes) / MIB, '<=', 2, ' MiB')

  await remembered(server, record)
  const { calls } = await idleCalls(server, { held: WAITING, waiting: WAITING })
  record.require('(k) calls a replica a lease, 10,000 waiting', calls, '<=', 8)
}

/** What a chat takes while the id of its last message is remembered; what is bounded per process is full before. */
async function remembered(server, record) {
  await server.admin.flushall()
  const chats = 100_000
  const job = { port: server.port, prefix: 'm', chats, warmUp: 50_000, dedupeMs: 3_600_000, leaseMs: 15_000 }
  const child = launch('spoke-once.mjs', { ...job, remember: true }, ['--expose-gc'])
  const { before, most } = (await child.next('looks')).looks
  await child.gone()
  const each = (what) => (most[what] - before[what]) / chats
  record.figures('memory per chat that spoke once and whose message is remembered', 'bytes', [
    { label: 'in Redis', value: each('redisBytes'), ours: true },
    { label: 'heap of the replica', value: each('heapBytes'), ours: true },
  ])
}

/** One replica holds, another waits, for ten seconds. @returns their calls a replica a lease, and Redis' CPU time of a second. */
export async function idleCalls(server, { held, waiting, leaseMs = 3000 }) {
  await server.admin.flushall()
  const job = { port: server.port, prefix: 'idle', leaseMs }
  const holder = launch('holding-process.mjs', { ...job, chats: held, replica: 'holder' })
  await holder.next('granted')
  const waiter = launch('holding-process.mjs', { ...job, chats: waiting, replica: 'waiter' })
  await waiter.next('queued')
  await pause(1500)
  const from = await server.usage()
  await pause(10_000)
  const to = await server.usage()
  holder.child.kill('SIGKILL')
  waiter.child.kill('SIGKILL')
  await Promise.all([holder.gone(), waiter.gone()])
  return {
    calls: (to.calls - from.calls) / 2 / (10_000 / leaseMs),
    redisMs: (to.cpuUs - from.cpuUs) / 10_000,
  }
}
