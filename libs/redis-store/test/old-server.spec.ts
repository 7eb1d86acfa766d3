/**
 * Servers whose version is too old, met at start (Z11). None can be had everywhere, so a double says that it is one: it
 * answers INFO, agrees to everything else, and notes what it was asked to do.
 */
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { describe, expect, it } from '@jest/globals'
import { ConfigError } from '@botmesh/core'
import { onTestEnd } from '../../../test/support/index.js'
import { RedisCoordinator, RedisStore } from '../src/index.js'

interface OldServer {
  url: string
  asked: string[]
}

async function startOldServer(version: string, clusterEnabled: boolean): Promise<OldServer> {
  const info = `redis_version:${version}\r\ncluster_enabled:${clusterEnabled ? 1 : 0}\r\nmaxmemory_policy:noeviction\r\n`
  const sockets = new Set<Socket>()
  const asked: string[] = []
  const answer = (words: string[], port: number): string => {
    const name = (words[0] ?? '').toLowerCase()
    asked.push(name)
    if (name === 'info') return `$${info.length}\r\n${info}\r\n`
    if (name === 'hello') return "-ERR unknown command 'HELLO'\r\n"
    if (name !== 'cluster') return '+OK\r\n'
    return `*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:${port}\r\n`
  }
  const server = createServer((socket) => {
    let rest = ''
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (data) => {
      rest += data.toString('latin1')
      for (;;) {
        const count = Number(/^\*(\d+)\r\n/.exec(rest)?.[1] ?? NaN)
        // A command is its count, and a length and a word each.
        const lines = rest.split('\r\n')
        if (Number.isNaN(count) || lines.length < 2 * count + 2) return
        const words = lines.slice(1, 2 * count + 1).filter((_, n) => n % 2 === 1)
        rest = lines.slice(2 * count + 1).join('\r\n')
        socket.write(answer(words, (server.address() as AddressInfo).port))
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestEnd(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'it was accepted',
    (reason: unknown) => reason,
  )
}

describe('Z11, S3: a server that is too old is refused at start, before anything is written', () => {
  it.each([
    ['6.0.16', 'single', /Redis 6\.0\.16 is too old: Botmesh needs Redis 6\.2 or later\./],
    [
      '6.2.14',
      'cluster',
      /Redis 6\.2\.14 is too old: Botmesh needs Redis 7\.0 or later for layout 'cluster'\./,
    ],
  ] as const)('Redis %s with layout %s', async (version, layout, said) => {
    const { url, asked } = await startOldServer(version, layout === 'cluster')
    const store = new RedisStore({ url, layout, startTimeoutMs: 3000 })
    const coordinator = new RedisCoordinator({ url, layout, startTimeoutMs: 3000 })
    for (const error of [await rejection(store.open()), await rejection(coordinator.start())]) {
      expect(error).toBeInstanceOf(ConfigError)
      expect((error as ConfigError).message).toMatch(said)
    }
    await Promise.all([store.close(), coordinator.stop()])
    expect(asked).toContain('info')
    expect(asked.filter((name) => name.startsWith('eval'))).toEqual([])
  })
})
