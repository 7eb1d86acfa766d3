/** The shop end to end over WhatsApp bodies: two replicas, on one in-process mesh and on one Redis. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { once } from 'node:events'
import { WebSocket } from 'ws'
import { ConfigError } from '@botmesh/core'
import { TelegramApiDouble } from '../../../test/doubles/telegram-api.js'
import { sharedRedisUrl, startRedis, waitFor } from '../../../test/support/index.js'
import { WhatsAppClient } from './whatsapp-client.js'
import { createMesh, createShop, settingsFrom, type Shop, type ShopOptions } from '../src/main.js'

const shops: Shop[] = []
let client: WhatsAppClient
let serial = 0

beforeEach(async () => {
  client = await WhatsAppClient.listen()
})
afterEach(async () => {
  await Promise.all(shops.splice(0).map((shop) => shop.close()))
  await client.close()
})

async function open(options: ShopOptions): Promise<Shop> {
  const shop = await createShop({
    host: '127.0.0.1',
    logLevel: 'fatal',
    webchatSecret: 'a secret for tests only',
    leaseMs: 1000,
    ...options,
  })
  shops.push(shop)
  return shop
}

const ORDER: [line: string, reply: RegExp][] = [
  ['pedido', /Esto es lo que queda/],
  ['zapatos', /no lo tenemos/],
  ['sudadera', /talla/],
  ['xl', /Cuántas/],
  ['2', /dirección/],
  ['Calle Mayor 1', /2 × Sudadera XL, para Calle Mayor 1/],
  ['cambiar', /volvemos a elegir/],
]

describe.each([
  ['an in-process mesh', async (): Promise<ShopOptions> => ({ mesh: createMesh() })],
  [
    'Redis',
    async (): Promise<ShopOptions> => ({
      redisUrl: await sharedRedisUrl(),
      prefix: `shop-${process.pid}-${++serial}`,
    }),
  ],
])('the shop on %s', (_name, backend) => {
  it('K1: an order goes on whichever replica gets the next answer, back and forth, and is booked once', async () => {
    const shared = { ...(await backend()), whatsapp: client.settings }
    const [a, b] = [await open({ ...shared, replicaId: 'a' }), await open({ ...shared, replicaId: 'b' })]
    let replies = 0
    for (const [index, [line, reply]] of ORDER.entries()) {
      expect(await client.say((index % 2 === 0 ? a : b).port, '34600000001', line, ++replies)).toMatch(reply)
    }
    // `cambiar` says one thing and asks another.
    replies++
    await waitFor(() => client.repliesTo('34600000001').length === replies, { what: 'the list again' })
    for (const [index, line] of ['gorra', 'u', '1', 'Calle Menor 2', 'sí'].entries()) {
      await client.say((index % 2 === 0 ? b : a).port, '34600000001', line, ++replies)
    }
    expect(client.repliesTo('34600000001').at(-1)).toMatch(/^Listo, pedido \S+ anotado/)
    expect(client.repliesTo('34600000001')).toHaveLength(replies)
  })

  it('N2: the interrupting command, the survey and the menu, in the language written', async () => {
    const shop = await open({ ...(await backend()), whatsapp: client.settings })
    expect(await client.say(shop.port, '1', 'hello', 1)).toMatch(/I am the assistant/)
    expect(await client.say(shop.port, '1', 'order', 2)).toMatch(/This is what we have/)
    expect(await client.say(shop.port, '1', '/cancel', 3)).toMatch(/I dropped/)
    expect(await client.say(shop.port, '1', '/cancelar', 4)).toMatch(/No había nada/)
    expect(await client.say(shop.port, '1', 'survey', 5)).toMatch(/From 1 to 5/)
    expect(await client.say(shop.port, '1', 'six', 6)).toMatch(/number from 1 to 5/)
    expect(await client.say(shop.port, '1', '5', 7)).toMatch(/better/)
    expect(await client.say(shop.port, '1', 'nothing', 8)).toMatch(/Glad/)
  })

  it('N5: a replica that is closed hands its chats on; with durability nothing is lost or doubled', async () => {
    const shared = { ...(await backend()), whatsapp: client.settings, durability: true }
    const [a, b] = [await open({ ...shared, replicaId: 'a' }), await open({ ...shared, replicaId: 'b' })]
    await client.say(a.port, '7', 'order', 1)
    await client.say(a.port, '7', 'shirt', 2)
    await a.close()
    expect(await client.say(b.port, '7', 'm', 3)).toMatch(/How many/)
    expect(client.repliesTo('7')).toHaveLength(3)
  })
})

it('P2: Telegram by webhook beside the others: the same flows, a bot and chats of its own', async () => {
  const telegram = await new TelegramApiDouble().listen()
  const webhookSecret = 'webhook-secret_1'
  const shop = await open({
    mesh: createMesh(),
    whatsapp: client.settings,
    telegram: { token: telegram.token, webhookSecret, apiRoot: telegram.url },
  })
  telegram.webhook = { url: `http://127.0.0.1:${shop.port}/webhooks/telegram`, secret: webhookSecret }
  telegram.say(34, 'pedido')
  await waitFor(() => telegram.sent.length === 1, { what: 'the question on Telegram' })
  expect(String(telegram.sent[0]?.payload['text'])).toMatch(/Esto es lo que queda/)
  // The same number on WhatsApp is another chat.
  expect(await client.say(shop.port, '34', 'hola', 1)).toMatch(/asistente/)
  telegram.say(34, '/cancelar')
  await waitFor(() => telegram.sent.length === 2, { what: 'the command on Telegram' })
  expect(String(telegram.sent[1]?.payload['text'])).toMatch(/He dejado/)
  await telegram.close()
})

it('serves the chat page, its socket and health', async () => {
  const shop = await open({ mesh: createMesh() })
  const url = `http://127.0.0.1:${shop.port}`
  expect(await (await fetch(`${url}/chat/`)).text()).toContain('Tienda Aurora')
  const health = (await (await fetch(`${url}/health`)).json()) as {
    details: Record<string, { role: string }>
  }
  expect(health.details['default']?.role).toBe('shared')
  const socket = new WebSocket(`ws://127.0.0.1:${shop.port}/chat/ws`)
  await once(socket, 'open')
  const frames: { t: string; from?: string; text?: string }[] = []
  socket.on('message', (data: Buffer) => void frames.push(JSON.parse(data.toString('utf8')) as { t: string }))
  socket.send(JSON.stringify({ t: 'hello', v: 1 }))
  await waitFor(() => frames.some((one) => one.t === 'welcome'), { what: 'welcome' })
  socket.send(JSON.stringify({ t: 'msg', cid: 'cid-00000001', text: 'hola' }))
  await waitFor(() => frames.some((one) => one.from === 'bot' && /asistente/.test(one.text ?? '')), {
    what: 'the menu in the chat',
  })
  socket.close()
  await once(socket, 'close')
})

it('scenario 26: without its Redis a replica is not ready, alive all the same, and recovers', async () => {
  const redis = await startRedis()
  const shop = await open({ redisUrl: redis.url })
  const status = async (path: string) => (await fetch(`http://127.0.0.1:${shop.port}${path}`)).status
  expect(await status('/health/ready')).toBe(200)
  await redis.kill()
  await waitFor(async () => (await status('/health/ready')) === 503, { what: 'not ready without Redis' })
  expect(await status('/health/live')).toBe(200)
  expect(await status('/health')).toBe(503)
  await redis.restart()
  await waitFor(async () => (await status('/health/ready')) === 200, { what: 'ready again' })
})

describe('settings', () => {
  it('come from the environment', () => {
    expect(settingsFrom({ PORT: '8080', REDIS_URL: 'redis://r', LEASE_MS: '3000', DURABILITY: '1' })).toEqual(
      {
        port: 8080,
        redisUrl: 'redis://r',
        leaseMs: 3000,
        durability: true,
      },
    )
  })

  it.each([
    [{ PORT: 'x' }, 'PORT is "x"'],
    [{ LEASE_MS: 'soon' }, 'LEASE_MS'],
    [{ TELEGRAM_WEBHOOK_SECRET: 'x' }, 'TELEGRAM_TOKEN is missing'],
    [{ HEALTH_STANDBY: 'yes' }, 'accepted: ready, not-ready'],
  ])('name what is wrong: %o', (env, message) => {
    expect(() => settingsFrom(env)).toThrow(ConfigError)
    expect(() => settingsFrom(env)).toThrow(message)
  })
})
