/** What a bot says of its own life: lines of the log for an operator, and errors that name what to do. */
import { afterEach, describe, expect, it } from '@jest/globals'
import { Bot, ProviderError, silentLogger } from '../../src/index.js'
import { FakeProvider, ManualClock } from '../../src/testing/index.js'
import { Mesh } from './support/mesh.js'

let mesh: Mesh
afterEach(() => mesh?.stop())

type Line = Record<string, unknown> & { message: string }

function meshWith({ exclusive }: { exclusive: boolean }): Line[] {
  const lines: Line[] = []
  const info = (details: object, message: string) => {
    if (message !== 'session begun') lines.push({ ...details, message })
  }
  const config = { name: 'shop', logger: { ...silentLogger, info } }
  mesh = new Mesh((bot) => void bot.onMessage((ctx) => ctx.reply(ctx.body)), { exclusive, config })
  return lines
}

describe('N5: lines of the log', () => {
  it('a replica says that it serves, drains and has drained: bot, replica, transport; nothing of chats', async () => {
    const lines = meshWith({ exclusive: false })
    const a = await mesh.add()
    const { replicaId: replica, incarnation } = a.coordinator
    const who = { bot: 'shop', replica, provider: 'fake:test' }
    const part = { exclusive: false, coordinated: true, incarnation }
    expect(lines).toEqual([{ ...who, ...part, message: 'the bot serves' }])
    await mesh.tell(a, 'hello')
    await mesh.run(a.bot.stop())
    expect(lines.slice(1)).toEqual([
      { ...who, inFlight: 0, drainMs: 10_000, message: 'the bot drains' },
      { ...who, ms: expect.any(Number), message: 'the bot has drained' },
    ])
  })

  it('without coordination there is no replica to name', async () => {
    const lines: Line[] = []
    const info = (details: object, message: string) => void lines.push({ ...details, message })
    const bot = new Bot({ provider: new FakeProvider(), logger: { ...silentLogger, info } })
    await bot.start()
    await bot.stop()
    const who = { bot: 'default', provider: 'fake:test' }
    expect(lines[0]).toEqual({ ...who, exclusive: false, coordinated: false, message: 'the bot serves' })
    expect(lines).toHaveLength(3)
  })

  it('C3: each session is told, with its replica, when it begins and when it is lost', async () => {
    const lines: Line[] = []
    const line = (details: object, message: string) => void lines.push({ ...details, message })
    mesh = new Mesh(() => undefined, { config: { logger: { ...silentLogger, info: line, warn: line } } })
    const { coordinator, clock } = await mesh.add()
    const { replicaId: replica, incarnation: session } = coordinator
    clock.pause()
    await mesh.clock.advance(2 * coordinator.leaseMs)
    clock.resume()
    await mesh.until(() => coordinator.incarnation !== session)
    expect(lines.filter(({ message }) => message.startsWith('session'))).toMatchObject([
      { session, replica, message: 'session begun' },
      { session, message: 'session lost; beginning a new incarnation' },
      { session: coordinator.incarnation, replica, message: 'session begun' },
    ])
  })

  it('a stop that ran out of time warns instead, with the chats whose work was cut and nothing of what they say', async () => {
    const lines: Line[] = []
    const warn = (details: object, message: string) => void lines.push({ ...details, message })
    const info = (details: object, message: string) => void lines.push({ ...details, message })
    const never = new Promise<void>(() => undefined)
    let begun = false
    const clock = new ManualClock()
    const provider = new FakeProvider()
    const logger = { ...silentLogger, info, warn }
    const bot = new Bot({ provider, clock, name: 'shop', drainMs: '2s', logger })
    bot.onMessage(() => {
      begun = true
      return never
    })
    await bot.start()
    void provider.receive({ chatId: 'ana', body: 'a secret' })
    await clock.advanceUntil(() => begun)
    let over = false
    const stopped = bot.stop().finally(() => (over = true))
    await clock.advanceUntil(() => over)
    await stopped
    expect(lines.some(({ message }) => message === 'the bot has drained')).toBe(false)
    expect(lines.at(-2)).toMatchObject({ inFlight: 1, drainMs: 2000, message: 'the bot drains' })
    expect(lines.at(-1)).toEqual({
      ...{ bot: 'shop', provider: provider.id, ms: expect.any(Number) },
      ...{ finished: false, disconnected: true, cut: 1, chats: [`${encodeURIComponent(provider.id)}/ana`] },
      message: 'the bot has stopped, but its time (drainMs) ran out before it had drained',
    })
    expect(JSON.stringify(lines)).not.toContain('secret')
  })

  it('a transport that does not disconnect in time is told in the same way', async () => {
    const lines: Line[] = []
    const warn = (details: object, message: string) => void lines.push({ ...details, message })
    const clock = new ManualClock()
    const provider = new FakeProvider()
    const bot = new Bot({ provider, clock, drainMs: '2s', logger: { ...silentLogger, warn } })
    await bot.start()
    provider.stop = () => new Promise(() => undefined)
    let over = false
    const stopped = bot.stop().finally(() => (over = true))
    await clock.advanceUntil(() => over)
    await stopped
    expect(lines.at(-1)).toMatchObject({ finished: true, disconnected: false, cut: 0 })
    expect(lines.at(-1)?.message).toContain('ran out')
  })

  it('P1: of an exclusive transport one serves and the other stands by, until it takes over', async () => {
    const lines = meshWith({ exclusive: true })
    const [a, b] = [await mesh.add(), await mesh.add()]
    await mesh.until(() => lines.length === 2)
    const said = () => lines.map(({ replica, message }) => [replica, message])
    const [first, second] = [a.coordinator.replicaId, b.coordinator.replicaId]
    const standsBy = 'the bot stands by: its transport is connected on another replica'
    expect(said()).toEqual([
      [first, 'the bot serves'],
      [second, standsBy],
    ])
    await mesh.run(a.bot.stop())
    await mesh.until(() => b.bot.health().ready)
    const taken = said().slice(2)
    expect(taken).toHaveLength(3)
    expect(taken[0]).toEqual([first, 'the bot drains'])
    expect(taken).toEqual(
      expect.arrayContaining([
        [first, 'the bot has drained'],
        [second, 'the bot serves'],
      ]),
    )
  })

  it('a start that fails has served nothing and drained nothing', async () => {
    const lines = meshWith({ exclusive: false })
    const a = mesh.prepare()
    a.provider.start = () => Promise.reject(refused())
    await expect(mesh.run(a.bot.start())).rejects.toThrow(ProviderError)
    await mesh.run(a.bot.stop())
    expect(lines).toEqual([])
  })

  it('a stop that comes before a start is over says just that', async () => {
    const lines = meshWith({ exclusive: false })
    const a = mesh.prepare()
    a.provider.start = () => new Promise(() => undefined)
    const refused = expect(a.bot.start()).rejects.toThrow('Bot "shop" was stopped before it had started.')
    await mesh.settle()
    await Promise.all([mesh.run(a.bot.stop()), refused])
    const who = { bot: 'shop', replica: a.coordinator.replicaId, provider: 'fake:test' }
    expect(lines).toEqual([{ ...who, ms: 0, message: 'the bot was stopped before it had started' }])
  })

  it('what such a stop cut off is told as well', async () => {
    const lines: Line[] = []
    const warn = (details: object, message: string) => void lines.push({ ...details, message })
    const clock = new ManualClock()
    const provider = new FakeProvider()
    const start = provider.start.bind(provider)
    provider.start = async (...args) => {
      await start(...args)
      await new Promise(() => undefined)
    }
    const bot = new Bot({ provider, clock, drainMs: '2s', logger: { ...silentLogger, warn } })
    let begun = false
    bot.onMessage(() => {
      begun = true
      return new Promise(() => undefined)
    })
    const refused = expect(bot.start()).rejects.toThrow('stopped before')
    await clock.settle()
    void provider.receive('hello')
    await clock.advanceUntil(() => begun)
    let over = false
    const stopped = bot.stop().finally(() => (over = true))
    await clock.advanceUntil(() => over)
    await Promise.all([stopped, refused])
    expect(lines).toMatchObject([{ finished: false, disconnected: true, cut: 1 }])
  })
})

describe('B2: a bot that does not run', () => {
  it('send() says whether it was not started yet or is stopped, and what to do', async () => {
    const bot = new Bot({ provider: new FakeProvider(), name: 'shop', logger: silentLogger })
    await expect(bot.send('ana', 'hello')).rejects.toMatchObject({
      code: 'COORDINATION_UNAVAILABLE',
      details: { why: 'stopped' },
      message:
        'Bot "shop" was not started yet: await bot.start() first or, where something else starts it, bot.ready.',
    })
    await bot.start()
    await bot.stop()
    await expect(bot.send('ana', 'hello')).rejects.toThrow(
      'Bot "shop" is stopped: it can send again after bot.start().',
    )
  })

  it('N5: a start that fails waits for a transport that does not stop no longer than drainMs', async () => {
    const clock = new ManualClock()
    const provider = new FakeProvider()
    provider.start = () => Promise.reject(refused())
    provider.stop = () => new Promise(() => undefined)
    const bot = new Bot({ provider, clock, drainMs: '2s', logger: silentLogger })
    let over = false
    const starting = bot.start().finally(() => (over = true))
    const failed = expect(starting).rejects.toThrow(ProviderError)
    expect(await clock.advanceUntil(() => over)).toBeLessThanOrEqual(2000)
    await failed
    expect(bot.health().status).toBe('idle')
    expect(clock.timers).toBe(0)
  })
})

const refused = () => new ProviderError('wrong password', { provider: 'fake:test', reason: 'x', final: true })
