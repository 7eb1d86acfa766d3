/** What a hand-off sends: a turn that was waited for ends behind a ping, so that the next one is told before its giver. */
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Turn } from '@botmesh/core'
import { RedisCoordinator } from '../src/index.js'
import { startRedis, type PrivateRedis } from './private-redis.js'

let server: PrivateRedis
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** What the server was sent, in order: by which connection, and which command. */
async function watched(act: () => Promise<void>): Promise<{ by: string; command: string }[]> {
  const monitor = await server.admin.monitor()
  const seen: { by: string; command: string }[] = []
  monitor.on('monitor', (_time: string, [command = '', ...args]: string[], by: string) =>
    seen.push({ by, command: command === 'evalsha' ? `${command} ${args.at(-1)}` : command }),
  )
  try {
    await act()
    await server.admin.echo('the end')
    while (!seen.some(({ command }) => command === 'echo')) await once(monitor, 'monitor')
  } finally {
    monitor.disconnect()
  }
  return seen
}

async function take(coordinator: RedisCoordinator, onTicket?: () => void): Promise<Turn> {
  const turn = await coordinator.turns.take('k', { waitMs: 10_000, onTicket })
  if (turn === 'duplicate') throw new Error('duplicate')
  return turn
}

describe('hand-offs', () => {
  it('Z1: a turn that was waited for ends behind a ping of its own connection, others do not', async () => {
    const replicas = [0, 1].map(
      (n) => new RedisCoordinator({ url: server.url, prefix: 'hand-off', replicaId: `replica-${n}` }),
    )
    const [a, b] = replicas as [RedisCoordinator, RedisCoordinator]
    const fences: string[] = []
    try {
      await Promise.all(replicas.map((one) => one.start()))
      const seen = await watched(async () => {
        const first = await take(a)
        let next: Promise<Turn> | undefined
        await new Promise<void>((inLine) => {
          next = take(b, inLine)
        })
        await first.release()
        const second = (await next) as Turn
        await second.release()
        const third = await take(b)
        await third.release()
        fences.push(...[first, second, third].map(({ fence }) => `R${fence}`))
      })
      const before = (release: string): string | undefined => {
        const at = seen.findIndex(({ command }) => command.startsWith(`evalsha ${release}`))
        expect(at).toBeGreaterThan(0)
        const { by } = seen[at] ?? {}
        return seen.slice(0, at).findLast((one) => one.by === by)?.command
      }
      expect(fences.map((release) => before(release) === 'ping')).toEqual([false, true, false])
    } finally {
      await Promise.all(replicas.map((one) => one.stop()))
    }
  })
})
