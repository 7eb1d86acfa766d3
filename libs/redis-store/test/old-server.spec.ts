/**
 * Servers whose version is too old, met at start (Z11), or that are loading for ever. None can be had everywhere, so a
 * double says that it is one: it answers INFO, runs no script, agrees to everything else, and notes what it was asked.
 */
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { describe, expect, it } from '@jest/globals'
import { ConfigError, StoreError } from '@botmesh/core'
import { onTestEnd, waitFor } from '../../../test/support/index.js'
import { RedisCoordinator, RedisStore } from '../src/index.js'

interface OldServer {
  url: string
  asked: string[]
  connections: () => number
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
    if (name.startsWith('eval')) return '-LOADING Redis is loading the dataset in memory\r\n'
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
  const { port } = server.address() as AddressInfo
  return { url: `redis://127.0.0.1:${port}`, asked, connections: () => sockets.size }
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

describe('S1: a server that is loading', () => {
  it('is tried again; a store that is closed meanwhile tries no more, and leaves no connection', async () => {
    const { url, asked, connections } = await startOldServer('7.0.15', false)
    const store = new RedisStore({ url, startTimeoutMs: 60_000 })
    const opened = rejection(store.open())
    const scripts = (): number => asked.filter((name) => name.startsWith('eval')).length
    await waitFor(() => scripts() > 3, { what: 'it is asked again' })
    await store.close()
    expect(await opened).toBeInstanceOf(StoreError)
    const before = scripts()
    await waitFor(() => connections() === 0, { what: 'no connection', timeoutMs: 2000 })
    expect(scripts()).toBe(before)
  })
})
