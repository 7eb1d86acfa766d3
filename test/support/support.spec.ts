/** The tests' own tools: what goes wrong must go wrong as asked, and nothing may be left behind. */
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from '@jest/globals'
import { Redis } from 'ioredis'
import { onTestEnd, sharedRedisUrl, spawnReplica, startFaultProxy, startRedis, waitFor } from './index.js'

const client = (url: string) => {
  const redis = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => null, lazyConnect: true })
  redis.on('error', () => {}) // Faults are the point; commands reject on their own.
  return redis
}

describe('startRedis', () => {
  it('kills, restarts empty on the same port, pauses and resumes', async () => {
    const redis = await startRedis()
    const first = client(redis.url)
    await first.set('key', 'value')
    const { pid } = redis
    await redis.restart()
    expect(redis.pid).not.toBe(pid)
    const second = client(redis.url)
    expect(await second.get('key')).toBeNull()

    redis.pause()
    let answered = false
    const answer = second.ping().then(() => {
      answered = true
    })
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(answered).toBe(false)
    redis.resume()
    await answer

    await redis.kill()
    await expect(client(redis.url).ping()).rejects.toThrow()
    await redis.stop()
    await redis.stop()
  })

  it('shares one address among those who ask', async () => {
    expect(await sharedRedisUrl()).toBe(await sharedRedisUrl())
    const redis = client(await sharedRedisUrl())
    expect(await redis.ping()).toBe('PONG')
    redis.disconnect()
  })
})

describe('startFaultProxy', () => {
  it('delays, swallows until healed, resets and cuts', async () => {
    const proxy = await startFaultProxy({ to: await sharedRedisUrl() })
    const redis = client(proxy.url)
    await redis.ping()
    proxy.delay(40, 'to-client')
    const start = performance.now()
    await redis.ping()
    expect(performance.now() - start).toBeGreaterThanOrEqual(39)
    proxy.heal()

    proxy.blackhole('to-client')
    let answers = 0
    const count = () => (answers += 1)
    const pending = [redis.incr(`support:${process.pid}`).then(count), redis.ping().then(count)]
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(answers).toBe(0)
    proxy.heal()
    await Promise.all(pending)
    expect(answers).toBe(2)

    proxy.reset()
    await waitFor(() => redis.status === 'end', { what: 'the client noticed the reset' })
    proxy.cut()
    await expect(client(proxy.url).ping()).rejects.toThrow()
    proxy.heal()
    const again = client(proxy.url)
    expect(await again.ping()).toBe('PONG')
    expect(proxy.connections()).toBe(1)
    again.disconnect()
    await waitFor(() => proxy.connections() === 0, { what: 'no connection is left' })
  })
})

describe('spawnReplica', () => {
  it('runs a TypeScript source, tells events, takes commands and drains', async () => {
    const replica = spawnReplica(new URL('./fixtures/echo-replica.ts', import.meta.url), { GREETING: 'hi' })
    expect(await replica.next('ready')).toMatchObject({ code: 'LEASE_LOST', greeting: 'hi' })
    expect(replica.log).toContain('not an event')
    replica.send({ n: 1 })
    replica.send({ n: 2 })
    expect(await replica.next('echo', { where: ({ n }) => n === 2 })).toMatchObject({ n: 2 })
    expect(await replica.next('echo')).toMatchObject({ n: 1 })
    replica.pause()
    replica.send({ n: 3 })
    await expect(replica.next('echo', { timeoutMs: 50 })).rejects.toThrow('told no "echo" within 50 ms')
    replica.resume()
    await replica.next('echo')
    expect(await replica.terminate()).toEqual({ code: 7, signal: null })
    expect(replica.events.at(-1)).toEqual({ event: 'drained' })
    await expect(replica.next('ready')).rejects.toThrow('ended')
  })

  it('runs sources as they are now, each with its own address, those that are not asked for not at all, and says where one fails', async () => {
    const dir = await realpath(await mkdtemp(join(tmpdir(), 'botmesh-source-')))
    onTestEnd(() => rm(dir, { recursive: true }))
    const [script, part] = ['script.ts', 'part.ts'].map((name) => join(dir, name)) as [string, string]
    await writeFile(
      script,
      `import { text, url } from './part.js'
      interface Told { text: string; urls: string[] }
      const told: Told = { text, urls: [import.meta.url, url] }
      console.log(JSON.stringify({ event: 'told', ...told }))
      if (told.text === '') await import('./unasked.js')
      throw new Error('no more')`,
    )
    await writeFile(join(dir, 'unasked.ts'), `import 'a-package-that-is-not-there'`)
    const run = async (text: string) => {
      await writeFile(part, `export const text: string = '${text}'\nexport const url = import.meta.url`)
      const replica = spawnReplica(script)
      const told = await replica.next('told')
      await replica.exited
      return { told, log: replica.log }
    }
    expect((await run('one')).told).toMatchObject({ text: 'one' })
    const { told, log } = await run('another')
    expect(told).toMatchObject({
      text: 'another',
      urls: [script, part].map((path) => String(pathToFileURL(path))),
    })
    expect(log).toContain(`${script}:6`)
  })

  it('ends with its test, and says why it could not start', async () => {
    const replica = spawnReplica(new URL('./fixtures/missing.ts', import.meta.url))
    await expect(replica.next('ready')).rejects.toThrow(/missing\.ts/)
    expect((await replica.kill()).code).toBe(1)
  })
})

describe('waitFor', () => {
  it('returns what the condition returned, or says what did not come true, and why', async () => {
    let asked = 0
    expect(await waitFor(() => (asked += 1) > 2 && `asked ${asked}`, { what: 'three' })).toBe('asked 3')
    const fail = () => {
      throw new Error('no route')
    }
    const failure = waitFor(fail, { what: 'a route', timeoutMs: 20 })
    await expect(failure).rejects.toMatchObject({ message: expect.stringContaining('a route') })
    await expect(failure).rejects.toHaveProperty('cause.message', 'no route')
  })
})
