/** What nobody would write on purpose: values that fail when they are looked at, times that no clock keeps, ids without sense. */
import { describe, expect, it } from '@jest/globals'
import {
  Bot,
  MemoryStore,
  ProviderError,
  SendError,
  systemClock,
  type DeadLetterError,
} from '../../src/index.js'
import { FakeProvider, ManualClock } from '../../src/testing/index.js'

const thrown: Record<string, () => unknown> = {
  'an object without prototype': () => Object.create(null) as unknown,
  'an error whose name is a symbol': () => Object.assign(new Error('x'), { name: Symbol('x') }),
  'an error whose message throws': () =>
    Object.defineProperty(new Error('x'), 'message', {
      get() {
        throw new Error('no message')
      },
    }),
  'a proxy that throws': () =>
    new Proxy(
      {},
      {
        getPrototypeOf() {
          throw new Error('no prototype')
        },
      },
    ),
}

const quiet = () => undefined
const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }

async function durable(define: (bot: Bot) => void) {
  const clock = new ManualClock()
  const provider = new FakeProvider()
  const store = new MemoryStore({ clock })
  const bot = new Bot({ provider, store, clock, logger, durability: { maxAttempts: 2, retryMs: 100 } })
  const errors: unknown[] = []
  bot.on('error', ({ error }) => void errors.push(error))
  define(bot)
  await bot.start()
  return { clock, provider, bot, errors }
}

describe('D3: whatever is thrown', () => {
  for (const [what, make] of Object.entries(thrown)) {
    for (const where of ['handler', 'step'] as const) {
      it(`${what}, in a ${where}, is an attempt, and the chat goes on after the last one`, async () => {
        let calls = 0
        const fail = () => {
          calls++
          throw make()
        }
        const { clock, provider, bot, errors } = await durable((one) => {
          one.flow('order', { on: 'flow' }).step('size', fail).persistent()
          one.onMessage((ctx) => (ctx.body === 'go' ? fail() : ctx.reply(`rest ${ctx.body}`)))
        })
        await provider.receive(where === 'step' ? 'flow' : 'go')
        await provider.receive('after')
        await clock.advance(10_000)
        expect(provider.texts).toEqual(['rest after'])
        expect(calls).toBe(2)
        expect((errors[1] as DeadLetterError).code).toBe('DEAD_LETTER')
        expect(await bot.deadLetters.list()).toMatchObject([
          { record: { attempts: 2, lastError: expect.stringContaining('cannot be told as text') } },
        ])
        await bot.stop()
      })
    }
  }

  it('null is reported and kept as what it is', async () => {
    const { clock, provider, bot, errors } = await durable((one) =>
      one.onMessage(() => {
        const nothing: unknown = null
        throw nothing
      }),
    )
    await provider.receive('go')
    await clock.advance(10_000)
    expect(errors).toEqual([null, expect.objectContaining({ code: 'DEAD_LETTER' })])
    expect(await bot.deadLetters.list()).toMatchObject([{ record: { lastError: 'null' } }])
    await bot.stop()
  })

  it('a very long message of an error is kept in part', async () => {
    const { clock, provider, bot } = await durable((one) =>
      one.onMessage(() => Promise.reject(new Error('x'.repeat(1_000_000)))),
    )
    await provider.receive('go')
    await clock.advance(10_000)
    const [letter] = await bot.deadLetters.list()
    expect(letter?.record.lastError?.length).toBeLessThan(2_100)
    await bot.stop()
  })

  for (const retryAfterMs of [Infinity, NaN]) {
    it(`a platform's pause of ${retryAfterMs} ms counts as none`, async () => {
      const { clock, provider, bot, errors } = await durable((one) =>
        one.onMessage((ctx) => ctx.reply(`rest ${ctx.body}`)),
      )
      const refusal = () =>
        new SendError('wait', { provider: 'fake:test', outcome: 'retryable', retryAfterMs, scope: 'chat' })
      provider.failNextSends(refusal())
      await provider.receive('one')
      await clock.advance(10_000)
      await provider.receive('two')
      await clock.advance(10_000)
      expect(provider.texts).toEqual(['rest one', 'rest two'])
      expect(errors.length).toBeLessThanOrEqual(1)
      await bot.stop()
    })
  }
})

describe('B4: ids', () => {
  it('half a character in the ids of message and chat is no obstacle', async () => {
    const { clock, provider, bot, errors } = await durable((one) => one.onMessage((ctx) => ctx.reply('ok')))
    await provider.receive({ id: '\ud800', chatId: 'a\udc00b', body: 'one' })
    await clock.advance(10)
    expect(provider.sent.map(({ to, text }) => [to.chatId, text])).toEqual([['a\udc00b', 'ok']])
    expect(errors).toEqual([])
    await bot.stop()
  })

  it('a message without an id is refused: it could not be told from others', async () => {
    const { provider, bot } = await durable((one) => one.onMessage((ctx) => ctx.reply('ok')))
    await expect(provider.receive({ id: '', body: 'one' })).rejects.toThrow(ProviderError)
    await expect(provider.receive({ id: '', body: 'one' })).rejects.toThrow('whose id is empty')
    await bot.stop()
  })
})

describe('the system clock', () => {
  it('does not take a pause of more than 2^31 ms for none', async () => {
    let early = false
    const timers = [2 ** 31, 1e12, Infinity].map((ms) =>
      systemClock.setTimeout(() => void (early = true), ms, { background: true }),
    )
    await new Promise<void>((resolve) => void systemClock.setTimeout(resolve, 20))
    for (const timer of timers) timer.cancel()
    expect(early).toBe(false)
  })
})
