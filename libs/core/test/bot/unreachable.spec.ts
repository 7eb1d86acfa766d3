/** The backend goes away and comes back (scenario 10), and floods (scenario 35). */
import { afterEach, describe, expect, it } from '@jest/globals'
import { Bot, MemoryStore, SessionCoordinator, silentLogger } from '../../src/index.js'
import {
  FakeProvider,
  FaultyBackend,
  ManualClock,
  MemoryBackend,
  MemoryCoordinationHub,
} from '../../src/testing/index.js'

let bot: Bot
let clock: ManualClock

async function run<T>(work: Promise<T>): Promise<T> {
  let done = false
  const watched = work.finally(() => (done = true))
  watched.catch(() => undefined)
  await clock.advanceUntil(() => done)
  return watched
}

afterEach(() => run(bot.stop()))

describe('scenario 10: the backend is unreachable for longer than a lease', () => {
  it('held turns end as lost, messages are reported within turnWaitMs, and all flows again afterwards', async () => {
    clock = new ManualClock()
    let down = false
    const hub = new MemoryCoordinationHub({ clock })
    const backend = new FaultyBackend(new MemoryBackend(hub), { fault: () => (down ? 'not-sent' : null) })
    const coordinator = new SessionCoordinator({ backend, leaseMs: 6000, clock })
    const provider = new FakeProvider()
    bot = new Bot({
      provider,
      clock,
      store: new MemoryStore({ clock }),
      logger: silentLogger,
      coordination: { coordinator, turnWaitMs: '4s' },
    })
    const errors: unknown[] = []
    const lost: unknown[] = []
    const refused: unknown[] = []
    let thaw: () => void = () => undefined
    bot.on('error', ({ error }) => errors.push(error))
    bot.on('coordination:lease-lost', (event) => lost.push(event))
    bot.onMessage(async (ctx) => {
      if (ctx.body === 'hold') await new Promise<void>((resolve) => (thaw = resolve))
      await ctx.reply(ctx.body).catch((error: unknown) => refused.push(error))
    })
    await run(bot.start())
    await run(provider.receive('hold'))
    down = true
    const next = run(provider.receive({ chatId: '7', body: 'next' })).catch((error: unknown) => error)
    await clock.advance(4500)
    expect(await next).toMatchObject({ code: 'COORDINATION_UNAVAILABLE' })
    expect(errors).toMatchObject([{ code: 'COORDINATION_UNAVAILABLE' }])
    await clock.advance(4500)
    expect(lost).toMatchObject([{ key: 'fake%3Atest/100', reason: expect.stringMatching(/frozen|expired/) }])
    expect(bot.health().ready).toBe(false)
    thaw()
    await clock.settle()
    expect(refused).toMatchObject([{ code: 'LEASE_LOST' }])
    down = false
    await clock.advance(6000)
    await run(provider.receive('hello'))
    await clock.settle()
    expect(provider.texts).toEqual(['hello'])
    expect(bot.health().ready).toBe(true)
  })
})

describe('scenario 35: a chat that floods', () => {
  it('more than maxWaitingPerChat are refused and reported; other chats go on', async () => {
    clock = new ManualClock()
    const provider = new FakeProvider()
    bot = new Bot({ provider, clock, maxWaitingPerChat: 3, drainMs: 100 })
    const errors: unknown[] = []
    bot.on('error', ({ error }) => errors.push(error))
    bot.onMessage((ctx) =>
      ctx.chatId === 'flood' ? new Promise<void>(() => undefined) : ctx.reply(ctx.body),
    )
    await bot.start()
    const outcomes = await Promise.allSettled(
      [1, 2, 3, 4, 5].map((n) => provider.receive({ chatId: 'flood', body: String(n) })),
    )
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
    ])
    const told = { why: 'overflow', key: expect.stringContaining('flood'), limit: 'maxWaitingPerChat' }
    expect(errors).toMatchObject([{ code: 'COORDINATION_UNAVAILABLE', details: told }])
    await clock.advance(1000)
    // Told once a second, however many there are.
    expect(errors.slice(1)).toMatchObject([{ details: { ...told, refused: 1 } }])
    await clock.advance(5000)
    expect(errors).toHaveLength(2)
    await provider.receive({ chatId: 'calm', body: 'fine' })
    await clock.settle()
    expect(provider.texts).toEqual(['fine'])
  })

  it('more than maxWaiting of all chats are refused and reported; those that were accepted are handled', async () => {
    clock = new ManualClock()
    const provider = new FakeProvider()
    bot = new Bot({ provider, clock, maxWaiting: 100, drainMs: 100 })
    const errors: unknown[] = []
    bot.on('error', ({ error }) => errors.push(error))
    let open: () => void = () => undefined
    const opened = new Promise<void>((resolve) => (open = resolve))
    bot.onMessage(async (ctx) => {
      await opened
      await ctx.reply(ctx.chatId)
    })
    await bot.start()
    const chats = Array.from({ length: 300 }, (_, n) => `chat-${n}`)
    const outcomes = await Promise.allSettled(chats.map((chatId) => provider.receive({ chatId, body: 'hi' })))
    const accepted = chats.filter((_, n) => outcomes[n]?.status === 'fulfilled')
    expect(accepted).toHaveLength(100)
    await clock.advance(1000)
    expect(errors).toMatchObject([
      { details: { why: 'overflow', limit: 'maxWaiting', key: expect.any(String) } },
      { details: { why: 'overflow', limit: 'maxWaiting', refused: 199 } },
    ])
    open()
    await clock.settle()
    expect(provider.texts).toEqual(accepted)
    // What was refused is no copy: delivered again it is handled.
    await provider.receive({ chatId: 'chat-299', body: 'hi' })
    await clock.settle()
    expect(provider.texts.at(-1)).toBe('chat-299')
  })
})
