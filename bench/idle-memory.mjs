/** (k) a million chats that spoke once, and 10,000 turns that wait: what they leave behind, and what they cost (scenario 34). */
import { setTimeout as pause } from 'node:timers/promises'
import { launch } from './processes.mjs'

const CHATS = 1_000_000
const WAITING = 10_000
const MIB = 1024 * 1024

/** @param {{ require: Function }} tools of run.mjs */
export async function idleMemory(server, { require }) {
  console.log(`(k) ${CHATS} chats that spoke once; dedupeMs 10 s, leaseMs 1 s`)
  await server.admin.flushall()
  const job = {
    port: server.port,
    prefix: 'k',
    chats: CHATS,
    warmUp: 50_000,
    dedupeMs: 10_000,
    leaseMs: 1000,
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
  require('(k) Redis after / before', after.redisBytes / before.redisBytes, '<=', 1.1)
  require('(k) keys after - before', after.keys - before.keys, '<=', 2)
  require('(k) heap after - before', (after.heapBytes - before.heapBytes) / MIB, '<=', 2, ' MiB')

  await idleWaiting(server, require)
}

async function idleWaiting(server, require) {
  console.log(`(k) ${WAITING} turns held, ${WAITING} waiting, ten seconds in which nothing happens`)
  const calls = await idleCalls(server, { held: WAITING, waiting: WAITING })
  require('(k) calls a replica a lease, 10,000 waiting', calls, '<=', 8)
}

/** One replica holds, another waits, for ten seconds. @returns their calls a replica a lease. */
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
  console.log(`  Redis ${((to.cpuUs - from.cpuUs) / 10_000).toFixed(2)} ms of CPU a second`)
  holder.child.kill('SIGKILL')
  waiter.child.kill('SIGKILL')
  await Promise.all([holder.gone(), waiter.gone()])
  return (to.calls - from.calls) / 2 / (10_000 / leaseMs)
}
