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
  const info = (details: object, message: string) => void lines.push({ ...details, message })
  const config = { name: 'shop', logger: { ...silentLogger, info } }
  mesh = new Mesh((bot) => void bot.onMessage((ctx) => ctx.reply(ctx.body)), { exclusive, config })
  return lines
}

describe('N5: lines of the log', () => {
  it('a replica says that it serves and that it has drained: bot, replica, transport; nothing of chats', async () => {
    const lines = meshWith({ exclusive: false })
    const a = await mesh.add()
    const who = { bot: 'shop', replica: a.coordinator.replicaId, provider: 'fake:test' }
    expect(lines).toEqual([{ ...who, message: 'the bot serves' }])
    await mesh.tell(a, 'hello')
    await mesh.run(a.bot.stop())
    expect(lines.slice(1)).toEqual([{ ...who, ms: expect.any(Number), message: 'the bot has drained' }])
  })

  it('a stop that ran out of time warns instead, with the chats whose work was cut and nothing of what they say', async () => {
    const lines: Line[] = []
    const warn = (details: object, message: string) => void lines.push({ ...details, message })
    const info = (_: object, message: string) => void lines.push({ message })
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
    expect(taken).toHaveLength(2)
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
