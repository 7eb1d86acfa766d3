/** The transport's life: one leader, standbys, webhooks, readiness (P1–P4, N4, scenarios 18, 20, 21). */
import { afterEach, describe, expect, it } from '@jest/globals'
import {
  ConfigError,
  ProviderError,
  ProviderNotLeaderError,
  type Bot,
  type WebhookRequest,
} from '../../src/index.js'
import { FakeProvider, connectionRefused } from '../../src/testing/index.js'
import { Mesh, type MeshOptions, type Replica } from './support/mesh.js'

let mesh: Mesh

afterEach(() => mesh.stop())

const echo = (bot: Bot) => void bot.onMessage((ctx) => ctx.reply(ctx.body))

async function two(options: MeshOptions = {}): Promise<[Replica, Replica]> {
  mesh = new Mesh(echo, { exclusive: true, leaseMs: 5000, ...options })
  return [await mesh.add(), await mesh.add()]
}

async function settled(promise: Promise<unknown>): Promise<'pending' | 'resolved' | 'rejected'> {
  let state: 'pending' | 'resolved' | 'rejected' = 'pending'
  promise.then(
    () => (state = 'resolved'),
    () => (state = 'rejected'),
  )
  await mesh.settle()
  return state
}

describe('an exclusive transport on two replicas', () => {
  it('P1, P4: one connects; the other stands by, not ready, and cannot send', async () => {
    const [a, b] = await two()
    await mesh.settle()
    expect([a, b].map(({ provider }) => provider.started)).toEqual([true, false])
    expect([a, b].map(({ bot }) => bot.health().role)).toEqual(['leader', 'follower'])
    expect([a, b].map(({ bot }) => bot.health().ready)).toEqual([true, false])
    expect(await settled(a.bot.ready)).toBe('resolved')
    expect(await settled(b.bot.ready)).toBe('pending')
    await expect(b.bot.send('100', 'hi')).rejects.toThrow(ProviderNotLeaderError)
    expect(mesh.payloads(a, 'coordination:leader')).toMatchObject([{ name: 'provider:fake:test' }])
    expect(mesh.payloads(b, 'coordination:follower')).toMatchObject([
      { bot: 'replica-1', name: 'provider:fake:test', reason: 'standby' },
    ])
    expect((await a.bot.send({ chatId: '100' }, 'hi')).id).toBe('fake-1')
  })

  it('Z7: an orderly stop lets the other one connect at once, after the first has disconnected', async () => {
    const [a, b] = await two()
    let connectedAtOnce = false
    b.bot.on('coordination:leader', () => (connectedAtOnce = !a.provider.started))
    await mesh.run(a.bot.stop())
    await mesh.until(() => b.provider.started, 1000)
    expect(connectedAtOnce).toBe(true)
    expect(await settled(b.bot.ready)).toBe('resolved')
    expect(await settled(a.bot.ready)).toBe('rejected')
  })

  it('P1: a leader that takes its time to disconnect is not followed before it has', async () => {
    const [a, b] = await two()
    const stop = a.provider.stop.bind(a.provider)
    let disconnected = false
    a.provider.stop = async () => {
      await new Promise<void>((resolve) => void mesh.clock.setTimeout(resolve, 4000))
      await stop()
      disconnected = true
    }
    let ledSince: boolean | undefined
    b.bot.on('coordination:leader', () => (ledSince = disconnected))
    await mesh.run(a.bot.stop())
    await mesh.until(() => ledSince !== undefined, 1000)
    expect(ledSince).toBe(true)
  })

  it('L1: when the leader dies the other one connects within a lease and a second', async () => {
    const [a, b] = await two()
    a.coordinator.crash()
    await mesh.until(() => b.provider.started, 6000)
    expect(b.bot.health().role).toBe('leader')
  })

  it('L2, scenario 20: a frozen leader disconnects when it wakes, and opens nothing any more', async () => {
    const [a, b] = await two()
    a.clock.pause()
    await mesh.until(() => b.provider.started, 6000)
    a.clock.resume()
    await mesh.settle()
    expect(a.provider.started).toBe(false)
    const opened = a.provider.connections
    a.provider.open()
    await mesh.settle()
    expect(a.provider.connections).toBe(opened)
    await expect(a.bot.send('100', 'late')).rejects.toThrow(ProviderNotLeaderError)
    expect(await settled(a.bot.ready)).toBe('pending')
  })

  it('P3, scenario 19: a leader whose transport stays closed resigns, and stands again later', async () => {
    const [a, b] = await two({ coordination: { providerDownMs: '10s' } })
    a.provider.close('replaced', true)
    await mesh.clock.advance(9900)
    expect(a.bot.health()).toMatchObject({ role: 'leader', ready: false })
    await mesh.until(() => b.provider.started, 1000)
    expect(a.provider.started).toBe(false)
    expect(mesh.payloads(a, 'coordination:follower').at(-1)).toMatchObject({ reason: 'transport-down' })
    await mesh.clock.advance(10_000)
    b.coordinator.crash()
    await mesh.until(() => a.provider.started, 10_000)
  })

  it('P3: a transport that closes for a moment keeps its leader', async () => {
    const [a, b] = await two({ coordination: { providerDownMs: '10s' } })
    a.provider.close('network')
    await mesh.clock.advance(8000)
    a.provider.open()
    await mesh.clock.advance(20_000)
    expect(a.bot.health().role).toBe('leader')
    expect(b.provider.started).toBe(false)
  })

  it('P1: a standby answers webhooks with 503 and Retry-After; the leader hands them to the transport', async () => {
    const [a, b] = await two({ exclusive: false, coordination: { providerSession: 'leader' } })
    await mesh.settle()
    const request: WebhookRequest = { method: 'POST', headers: {}, query: {}, rawBody: new Uint8Array() }
    expect(await a.bot.handleWebhook(request)).toMatchObject({ status: 404 })
    for (const { provider } of [a, b]) {
      Object.assign(provider, { handle: () => Promise.resolve({ status: 200 }) })
    }
    expect(await a.bot.handleWebhook(request)).toEqual({ status: 200 })
    const refused = await b.bot.handleWebhook(request)
    expect(refused.status).toBe(503)
    expect(Number(refused.headers?.['retry-after'])).toBeGreaterThan(0)
  })

  it("P1: 'shared' connects an exclusive transport on every replica", async () => {
    const [a, b] = await two({ coordination: { providerSession: 'shared' } })
    expect([a, b].map(({ provider }) => provider.started)).toEqual([true, true])
    expect(b.bot.health()).toMatchObject({ role: 'shared', ready: true })
  })

  it('T5: the timer of a former leader says nothing; the chat is the new leader’s', async () => {
    mesh = new Mesh(
      (bot) => {
        bot.flow('ask', { on: 'ask' }).step('one', async (c) => {
          await c.ask('One?', { timeout: '20s' }).catch(() => c.say('too late'))
        })
      },
      { exclusive: true, leaseMs: 5000 },
    )
    const [a, b] = [await mesh.add(), await mesh.add()]
    await mesh.tell(a, 'ask')
    a.clock.pause()
    await mesh.until(() => b.provider.started, 6000)
    a.clock.resume()
    await mesh.clock.advance(30_000)
    expect(mesh.said).toEqual(['One?'])
    expect(a.errors).toEqual([])
  })

  it('a transport that cannot start is started again; one that never can is reported', async () => {
    mesh = new Mesh(echo, { exclusive: true })
    const a = mesh.prepare()
    let refusals = 2
    const start = a.provider.start.bind(a.provider)
    Object.assign(a.provider, {
      start: (...args: Parameters<FakeProvider['start']>) =>
        refusals-- > 0 ? Promise.reject(connectionRefused('fake:test')) : start(...args),
    })
    await mesh.run(a.bot.start())
    await mesh.until(() => a.provider.started, 30_000)
    expect(a.errors).toHaveLength(2)
    expect(await settled(a.bot.ready)).toBe('resolved')
  })
})

describe('a transport without coordination', () => {
  it('scenario 21: start() twice is one connection; stop and start again work', async () => {
    mesh = new Mesh(echo)
    const provider = new FakeProvider()
    const { Bot: Make } = await import('../../src/index.js')
    const bot = new Make({ provider, clock: mesh.clock })
    bot.onMessage((ctx) => ctx.reply(ctx.body))
    await mesh.run(Promise.all([bot.start(), bot.start()]))
    expect(provider.connections).toBe(1)
    await mesh.run(bot.stop())
    await mesh.run(bot.stop())
    expect(provider.started).toBe(false)
    await mesh.run(bot.start())
    await mesh.run(provider.receive('again'))
    await mesh.until(() => provider.texts.length === 1)
    expect(provider.connections).toBe(2)
    await mesh.run(bot.stop())
  })

  it('a wrong password fails start() at once, and leaves nothing running', async () => {
    mesh = new Mesh(echo)
    const provider = new FakeProvider()
    Object.assign(provider, { start: () => Promise.reject(connectionRefused('fake:test', true)) })
    const { Bot: Make } = await import('../../src/index.js')
    const bot = new Make({ provider, clock: mesh.clock })
    await expect(mesh.run(bot.start())).rejects.toThrow(ProviderError)
    expect(bot.health().status).toBe('idle')
    expect(mesh.clock.timers).toBe(0)
  })

  it('N5: a stop does not wait for a start that hangs; what it begins later is ended too', async () => {
    mesh = new Mesh(echo)
    const provider = new FakeProvider()
    let connect: () => void = () => undefined
    const start = provider.start.bind(provider)
    provider.start = async (...args) => {
      await new Promise<void>((resolve) => (connect = resolve))
      await start(...args)
    }
    const { Bot: Make } = await import('../../src/index.js')
    const bot = new Make({ provider, clock: mesh.clock, drainMs: '2s' })
    const refused = expect(bot.start()).rejects.toMatchObject({ details: { why: 'stopped' } })
    await mesh.settle()
    await Promise.all([bot.stop(), refused])
    expect(bot.health().status).toBe('stopped')
    connect()
    await mesh.settle()
    expect(provider.started).toBe(false)
    expect(mesh.clock.timers).toBe(0)
  })

  it('B1: nothing runs by itself: no timer without coordination', async () => {
    mesh = new Mesh(echo)
    const provider = new FakeProvider()
    const { Bot: Make } = await import('../../src/index.js')
    const bot = new Make({ provider, clock: mesh.clock })
    bot.onMessage((ctx) => ctx.reply(ctx.body))
    await mesh.run(bot.start())
    await mesh.run(provider.receive('x'))
    await mesh.settle()
    expect(mesh.clock.timers).toBe(0)
    expect(provider.texts).toEqual(['x'])
    expect(bot.health()).toMatchObject({ role: 'shared', ready: true, coordinator: null })
    await mesh.run(bot.stop())
    await expect(bot.send('1', 'x')).rejects.toMatchObject({ code: 'COORDINATION_UNAVAILABLE' })
    expect(() => bot.on('eror' as 'error', () => undefined)).toThrow(ConfigError)
  })
})
