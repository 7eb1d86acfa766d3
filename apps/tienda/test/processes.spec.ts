/** Replicas of the shop as processes on one Redis: drained under load, killed in the middle of an order. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { sharedRedisUrl, spawnReplica, waitFor, type Replica } from '../../../test/support/index.js'
import { newId, WhatsAppClient } from './whatsapp-client.js'

const MAIN = new URL('../src/main.ts', import.meta.url)
const LEASE_MS = 2000
let client: WhatsAppClient
let prefix: string
let serial = 0

beforeEach(async () => {
  client = await WhatsAppClient.listen()
  prefix = `shop-processes-${process.pid}-${++serial}`
})
afterEach(() => client.close())

async function start(name: string): Promise<{ replica: Replica; port: number }> {
  const replica = await spawn(name, 0)
  const { port } = await replica.next('listening', { timeoutMs: 30_000 })
  return { replica, port: Number(port) }
}

async function spawn(name: string, port: number): Promise<Replica> {
  const { settings } = client
  return spawnReplica(MAIN, {
    PORT: String(port),
    HOST: '127.0.0.1',
    REDIS_URL: await sharedRedisUrl(),
    PREFIX: prefix,
    REPLICA_ID: name,
    LEASE_MS: String(LEASE_MS),
    DURABILITY: '1',
    WEBCHAT_SECRET: 'a secret for tests only',
    WHATSAPP_PHONE_NUMBER_ID: settings.phoneNumberId,
    WHATSAPP_ACCESS_TOKEN: settings.accessToken,
    WHATSAPP_APP_SECRET: settings.appSecret,
    WHATSAPP_VERIFY_TOKEN: settings.verifyToken,
    WHATSAPP_GRAPH_URL: settings.graphUrl,
  })
}

describe('N5', () => {
  it('a replica whose port is taken ends by itself; it does not go on unseen, with chats and jobs', async () => {
    const a = await start('a')
    const b = await spawn('b', a.port)
    expect(await b.exited).toEqual({ code: 1, signal: null })
    expect(await client.say(a.port, '1', 'order', 1)).toMatch(/This is what we have/)
    await a.replica.terminate()
  }, 60_000)
})

describe('scenario 27', () => {
  it('SIGTERM under load: what was taken is answered once, what was not is refused, the process ends by itself', async () => {
    const [a, b] = await Promise.all([start('a'), start('b')])
    const answered = new Map<string, number>()
    let draining = false
    const refused: string[] = []
    const load = Array.from({ length: 60 }, async (_, index) => {
      const chat = `3460000${String(index).padStart(4, '0')}`
      await new Promise((resolve) => setTimeout(resolve, index * 25))
      const id = newId(chat)
      // As a balancer does: another replica gets what the first one refuses.
      for (const port of index % 2 === 0 ? [a.port, b.port] : [b.port, a.port]) {
        const status = await client.post(port, chat, 'hola', id)
        answered.set(chat, status)
        if (status === 200) return
        refused.push(`${chat}: ${status}${draining ? '' : ' before the drain'}`)
      }
    })
    await new Promise((resolve) => setTimeout(resolve, 600))
    draining = true
    const began = performance.now()
    const exit = await a.replica.terminate()
    expect(performance.now() - began).toBeLessThan(10_000)
    expect(exit.code === 0 || exit.signal === 'SIGTERM').toBe(true)
    await Promise.all(load)
    expect(refused.filter((one) => one.endsWith('before the drain'))).toEqual([])
    expect([...answered.values()].every((status) => status === 200)).toBe(true)
    await waitFor(() => [...answered.keys()].every((chat) => client.repliesTo(chat).length > 0), {
      what: 'every chat is answered',
    })
    expect([...answered.keys()].filter((chat) => client.repliesTo(chat).length !== 1)).toEqual([])
    await b.replica.terminate()
  }, 60_000)
})

describe('scenario 3', () => {
  it('kill -9 in the middle of an order: the other replica goes on at the right question', async () => {
    const [a, b] = await Promise.all([start('a'), start('b')])
    expect(await client.say(a.port, '1', 'order', 1)).toMatch(/This is what we have/)
    expect(await client.say(a.port, '1', 'shirt', 2)).toMatch(/which size/)
    await a.replica.kill()
    expect(await client.say(b.port, '1', 'm', 3)).toMatch(/How many/)
    const handled = await b.replica.next('handled')
    expect(handled).toMatchObject({ replica: 'b', bot: 'whatsapp' })
    expect(String(handled['previousHolder'])).toMatch(/^a/)
    expect(Number(handled['fence'])).toBeGreaterThan(0)
    expect((await b.replica.next('handover')).outcome).toBe('resumed')
    expect(client.repliesTo('1')).toHaveLength(3)
    await b.replica.terminate()
  }, 60_000)
})
