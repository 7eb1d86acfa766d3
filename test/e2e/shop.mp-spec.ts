/** The shop as processes behind a balancer: what platforms post, and what becomes of it when replicas come and go. */
import { beforeAll, describe, expect, it } from '@jest/globals'
import { signMetaBody, metaText, metaWebhookBody } from '../doubles/graph-api.js'
import { APP_SECRET, NUMBER } from '../../apps/tienda/test/whatsapp-client.js'
import { waitFor } from '../support/index.js'
import { ShopMesh, type ShopReplica } from './support/shop-mesh.js'

const MINUTE = 60_000
const WHATSAPP = '/webhooks/whatsapp'
const TELEGRAM = '/webhooks/telegram'

describe('a mesh of two', () => {
  let mesh: ShopMesh
  beforeAll(async () => {
    mesh = await ShopMesh.open(['a', 'b'])
  }, MINUTE)

  it('scenario 25: what is not signed, too large or no JSON gets 4xx at every replica and reaches no handler', async () => {
    const body = metaWebhookBody(NUMBER, [metaText('34600000001', 'wamid.bad', 'hola')])
    const signed = (raw: string | Uint8Array) => ({ 'x-hub-signature-256': signMetaBody(raw, APP_SECRET) })
    const large = Buffer.alloc(4 * 1024 * 1024, ' ')
    const status = {
      wrongSignature: () => mesh.post(WHATSAPP, body, { 'x-hub-signature-256': signMetaBody(body, 'wrong') }),
      otherBody: () => mesh.post(WHATSAPP, `${body} `, signed(body)),
      noSignature: () => mesh.post(WHATSAPP, body, {}),
      wrongSecret: () => mesh.post(TELEGRAM, '{"update_id":1}', { 'x-telegram-bot-api-secret-token': 'no' }),
      noSecret: () => mesh.post(TELEGRAM, '{"update_id":1}', {}),
      noJson: () => mesh.post(WHATSAPP, '{"entry":', signed('{"entry":')),
      tooLarge: () => mesh.post(WHATSAPP, large, signed(large)),
    }
    for (let round = 0; round < 2; round += 1) {
      const got: Record<string, number> = {}
      for (const [what, post] of Object.entries(status)) got[what] = await post()
      expect(got).toEqual({
        wrongSignature: 401,
        otherBody: 401,
        noSignature: 401,
        wrongSecret: 401,
        noSecret: 401,
        noJson: 400,
        tooLarge: 413,
      })
    }
    const unknown = JSON.stringify({
      object: 'whatsapp_business_account',
      entry: [{ id: '1', changes: [{ field: 'x' }] }],
    })
    expect(await mesh.post(WHATSAPP, unknown, signed(unknown))).toBe(200)
    // A good one is answered, and it is the only one that anybody handled.
    await mesh.say('34600000002', 'hola', 1)
    expect(mesh.handled()).toHaveLength(1)
    expect(mesh.client.graph.sends).toHaveLength(1)
    expect(mesh.told('error')).toEqual([])
  })

  it('scenario 17: the webhook is acknowledged while the handler still works', async () => {
    const slowMs = 1500
    mesh.graph.delay(slowMs, 'to-client')
    for (const chat of ['34600000003', '34600000004']) {
      const began = performance.now()
      const id = await mesh.deliver(chat, 'hola')
      expect(performance.now() - began).toBeLessThan(slowMs / 2)
      expect(mesh.handled(id)).toEqual([])
      await waitFor(() => mesh.handled(id).length === 1, { what: 'the handler ends' })
      expect(performance.now() - began).toBeGreaterThanOrEqual(slowMs - 50)
    }
    mesh.graph.heal()
  })

  it('scenario 26: a replica that cannot reach Redis is not ready and takes nothing, but lives; the other serves', async () => {
    const [a, b] = mesh.replicas as [ShopReplica, ShopReplica]
    expect(await Promise.all([a, b].map((one) => mesh.status(one, '/health/ready')))).toEqual([200, 200])
    a.redis.cut()
    await waitFor(async () => (await mesh.status(a, '/health/ready')) === 503, { what: 'a is not ready' })
    expect(await mesh.status(a, '/health/live')).toBe(200)
    expect(await mesh.status(b, '/health/ready')).toBe(200)
    for (let n = 1; n <= 4; n += 1) {
      const { by } = await mesh.say('34600000005', 'hola', n)
      expect(by.name).toBe('b')
    }
    a.redis.heal()
    await waitFor(async () => (await mesh.status(a, '/health/ready')) === 200, { what: 'a is ready again' })
    expect(mesh.client.repliesTo('34600000005')).toHaveLength(4)
    for (const one of [a, b]) expect(await one.process.terminate()).toEqual({ code: 0, signal: null })
  })
})

describe('replicas that come and go in the middle of an order', () => {
  it(
    'K1, scenario 3: killed, frozen, drained: it goes on at the right question, one reply each',
    async () => {
      const mesh = await ShopMesh.open(['a', 'b', 'c', 'd'])
      const chat = '34600000010'
      const seen: string[] = []
      const say = async (text: string) => {
        const { reply, by } = await mesh.say(chat, text, seen.length + 1)
        seen.push(reply)
        return by
      }
      await say('order')
      const killed = await say('hoodie')
      await killed.process.kill()
      const frozen = await say('m')
      frozen.process.pause()
      const drained = await say('2')
      // Not in the middle of nothing: the frozen one wakes up while the next answer is on its way.
      const [, exit] = await Promise.all([say('12 High Street'), drained.process.terminate()])
      frozen.process.resume()
      await say('yes')
      expect(seen.map((text) => text.split(/[?.\n]/)[0])).toEqual([
        'This is what we have left today:',
        expect.stringContaining('which size'),
        'How many',
        'Where shall we send it',
        expect.stringContaining('2 × '),
        expect.stringMatching(/^Done, order/),
      ])
      expect(exit).toEqual({ code: 0, signal: null })
      expect(new Set([killed, frozen, drained]).size).toBe(3)
      await say('hello')
      for (const { process } of mesh.replicas.filter((one) => one !== killed && one !== drained))
        expect(await process.terminate()).toEqual({ code: 0, signal: null })
      // Nothing came late.
      expect(mesh.client.repliesTo(chat)).toEqual(seen)
      const handled = mesh.handled().map(({ messageId }) => messageId)
      expect(handled).toHaveLength(new Set(handled).size)
      expect(mesh.told('handover').length).toBeGreaterThanOrEqual(3)
    },
    2 * MINUTE,
  )
})

describe('scenario 27, N5: SIGTERM under load', () => {
  it(
    'running turns finish, nothing new is taken, the next replica goes on at once, the process ends by itself',
    async () => {
      const leaseMs = 5000
      const mesh = await ShopMesh.open(['a', 'b'], { leaseMs })
      const [a, b] = mesh.replicas as [ShopReplica, ShopReplica]
      // Conversations in progress, each begun by whichever replica.
      const ordering = Array.from({ length: 6 }, (_, n) => `3461000000${n}`)
      await Promise.all(ordering.map((chat) => mesh.say(chat, 'order', 1)))
      // Each send takes a while, so that turns are running when the signal comes.
      mesh.graph.delay(150, 'to-client')
      const chats = Array.from({ length: 60 }, (_, n) => `346200000${String(n).padStart(2, '0')}`)
      const load = chats.map(async (chat, n) => {
        await new Promise((resolve) => setTimeout(resolve, n * 20))
        await mesh.deliver(chat, 'hola')
      })
      await waitFor(() => mesh.handled().filter(({ replica }) => replica === 'a').length > 12, {
        what: 'a is at work',
      })
      const began = performance.now()
      const exit = await a.process.terminate()
      expect(exit).toEqual({ code: 0, signal: null })
      expect(performance.now() - began).toBeLessThan(3000)
      const gone = performance.now()
      await Promise.all(ordering.map((chat) => mesh.say(chat, 'shirt', 2)))
      // After leaseMs, had it not released what it held.
      expect(performance.now() - gone).toBeLessThan(leaseMs / 2)
      await Promise.all(load)
      await waitFor(() => chats.every((chat) => mesh.client.repliesTo(chat).length > 0), {
        what: 'everyone is answered',
      })
      expect(await b.process.terminate()).toEqual({ code: 0, signal: null })
      expect(chats.filter((chat) => mesh.client.repliesTo(chat).length !== 1)).toEqual([])
      expect(ordering.map((chat) => mesh.client.repliesTo(chat).length)).toEqual(ordering.map(() => 2))
      expect(mesh.told('error')).toEqual([])
    },
    2 * MINUTE,
  )
})
