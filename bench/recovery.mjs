/** (d) what an idle mesh costs, and (e) how soon the next in line gets the turn of a process that was killed. */
import { setTimeout as pause } from 'node:timers/promises'
import { idleCalls } from './idle-memory.mjs'
import { launch } from './processes.mjs'
import { randomFrom } from './random.mjs'
import { spread } from './statistics.mjs'

const LEASE_MS = 5000
const SEED = 12_345

export async function idle({ server, record }) {
  const calls = []
  const cpu = []
  for (const [held, waiting] of [
    [10_000, 1000],
    [100, 10],
  ]) {
    const found = await idleCalls(server, { held, waiting })
    const label = `${held.toLocaleString('en')} held, ${waiting.toLocaleString('en')} waiting`
    calls.push({ label, value: found.calls, ours: true })
    cpu.push({ label, value: found.redisMs, ours: true })
    record.require(`(d) calls a replica a lease, ${held} held`, found.calls, '<=', 8)
  }
  record.figures('calls a replica a lease', 'calls', calls)
  record.figures("Redis' processor time, of each second", 'ms', cpu)
}

export async function recovery({ server, record, rounds }) {
  const late = { alone: [], behindDead: [] }
  const early = []
  const random = randomFrom(SEED)
  for (let round = 0; round < Math.min(rounds, 5); round += 1) {
    for (const kind of ['alone', 'behindDead']) {
      const { tookMs, left } = await killHolder(server, kind, random)
      late[kind].push(tookMs / LEASE_MS)
      early.push(tookMs - left)
    }
  }
  record.figures('from the kill to the next grant', 'leases', [
    { label: 'next in line alive', ours: true, ...spread(late.alone) },
    { label: 'next in line dead as well', ours: true, ...spread(late.behindDead) },
  ])
  record.require('(e) next grant after the kill, in leases', Math.max(...late.alone), '<=', 1.05)
  record.require('(e) with a dead waiter in line, in leases', Math.max(...late.behindDead), '<=', 1.07)
  record.require('(e) after the end of the dead session, at least', Math.min(...early), '>=', -1, ' ms')
}

/** @returns how long after the kill the next one had the turn, and how long the dead session still lived. */
async function killHolder(server, kind, random) {
  await server.admin.flushall()
  const job = { port: server.port, prefix: 'e', leaseMs: LEASE_MS, chats: 1 }
  const holder = launch('holding-process.mjs', { ...job, replica: 'holder' })
  const { incarnation } = await holder.next('granted')
  const dead = launch('holding-process.mjs', { ...job, replica: 'dead' })
  await dead.next('queued')
  const waiter = launch('holding-process.mjs', { ...job, replica: 'waiter' })
  await waiter.next('queued')
  await pause(random() * 2000)
  if (kind === 'behindDead') dead.child.kill('SIGKILL')
  const left = await server.admin.pttl(`e:{0}:s:${incarnation}`)
  const killed = Number(process.hrtime.bigint() / 1000n)
  holder.child.kill('SIGKILL')
  const first = kind === 'behindDead' ? waiter : dead
  const { granted } = await first.next('granted')
  for (const child of [dead, waiter]) child.child.kill('SIGKILL')
  await Promise.all([holder, dead, waiter].map((child) => child.gone()))
  return { tookMs: (granted - killed) / 1000, left }
}
