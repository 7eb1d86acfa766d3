/** A bot alone: queues, routing, flows, contexts, without coordination (B1–B3, B5). */
import { afterEach, describe, expect, it } from '@jest/globals'
import { Bot, MemoryStore, type BotConfig, type MessageContext } from '../../src/index.js'
import { FakeProvider } from '../../src/testing/index.js'

const bots: Bot[] = []

function botWith(config: Partial<BotConfig> = {}): { bot: Bot; provider: FakeProvider } {
  const provider = new FakeProvider()
  const bot = new Bot({ provider, ...config })
  bots.push(bot)
  return { bot, provider }
}

afterEach(async () => {
  await Promise.all(bots.splice(0).map((bot) => bot.stop()))
})

describe('B1, B2: a bot in one process', () => {
  it('B2: answers, and tells who wrote what', async () => {
    const { bot, provider } = botWith()
    bot.onMessage((ctx) => ctx.reply(`${ctx.from}: ${ctx.body} (${ctx.type}) in ${ctx.chatId}`))
    await bot.start()
    await bot.ready
    await provider.receive({ chatId: '7', body: 'hi' })
    expect((await provider.nextSent()).text).toBe('7: hi (text) in 7')
  })

  it('B1: one chat in order, one at a time; different chats side by side', async () => {
    const { bot, provider } = botWith()
    const log: string[] = []
    const gates = new Map<string, () => void>()
    bot.onMessage(async (ctx) => {
      log.push(`begin ${ctx.body}`)
      await new Promise<void>((resolve) => gates.set(ctx.body, resolve))
      log.push(`end ${ctx.body}`)
      await ctx.reply(ctx.body)
    })
    await bot.start()
    await provider.receive({ chatId: 'a', body: 'a1' })
    await provider.receive({ chatId: 'a', body: 'a2' })
    await provider.receive({ chatId: 'b', body: 'b1' })
    await until(() => gates.has('b1'))
    expect(log).toEqual(['begin a1', 'begin b1'])
    gates.get('a1')?.()
    await until(() => gates.has('a2'))
    gates.get('a2')?.()
    gates.get('b1')?.()
    await provider.waitForSends(3)
    expect(log.filter((line) => line.includes('a'))).toEqual(['begin a1', 'end a1', 'begin a2', 'end a2'])
  })

  it('B1: a repeated platform id is dropped', async () => {
    const { bot, provider } = botWith()
    let count = 0
    bot.onMessage(() => void count++)
    await bot.start()
    await provider.receive({ id: 'same', body: '1' })
    await provider.receive({ id: 'same', body: '1' })
    await provider.receive({ id: 'same', chatId: 'other', body: '1' })
    await until(() => bot.health().inFlight === 0)
    expect(count).toBe(2)
  })

  it('B1: makes no store call, unless a flow persists or ctx.user is used', async () => {
    const calls: string[] = []
    const store = new Proxy(new MemoryStore(), {
      get(target, name) {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          calls.push(String(name))
          return (value as (...all: unknown[]) => unknown).apply(target, args)
        }
      },
    })
    const { bot, provider } = botWith({ store })
    bot.hears(/user/, (ctx) => ctx.reply('no'))
    bot.onMessage((ctx) => ctx.reply('yes'))
    bot.flow('talk', { on: 'talk' }).step('one', async (c) => void (await c.ask('?')))
    await bot.start()
    calls.length = 0
    await provider.receive('hello')
    await provider.receive('talk')
    await provider.receive('answer')
    await provider.waitForSends(2)
    await until(() => bot.health().inFlight === 0)
    expect(calls).toEqual([])
  })

  it('B2: keeps ctx.user in the store', async () => {
    const store = new MemoryStore()
    const { bot, provider } = botWith({ store })
    bot.onMessage(async (ctx) => {
      ctx.user.count = Number(ctx.user.count ?? 0) + 1
      await ctx.reply(String(ctx.user.count))
    })
    await bot.start()
    await provider.receive('1')
    await provider.receive('2')
    await provider.waitForSends(2)
    expect(provider.texts).toEqual(['1', '2'])
    await until(() => bot.health().inFlight === 0)
    expect((await store.getUser('fake%3Atest/100'))?.data).toEqual({ count: 2 })
  })

  it('B2: an error of a handler is reported, and the next message is handled', async () => {
    const { bot, provider } = botWith()
    const errors: unknown[] = []
    bot.on('error', ({ error }) => errors.push(error))
    bot.onMessage((ctx) => {
      if (ctx.body === 'bad') throw new Error('broken')
      return ctx.reply('fine')
    })
    await bot.start()
    await provider.receive('bad')
    await provider.receive('good')
    expect((await provider.nextSent()).text).toBe('fine')
    expect(errors).toEqual([new Error('broken')])
  })
})

describe('B3: routing and conversations', () => {
  it('API: interrupting commands → conversation → commands → triggers → hears → onMessage', async () => {
    const { bot, provider } = botWith()
    const said = (text: string) => (ctx: MessageContext) => ctx.reply(text)
    bot.command('stop', async (ctx) => ctx.reply(`stopped ${await ctx.leave()}`), { interrupt: true })
    bot.command('help', (ctx) => ctx.reply(`help ${ctx.args}`))
    bot.hears(['order', /^o/], said('heard'))
    bot.onMessage(said('rest'))
    bot
      .flow('order', { on: ['order'] })
      .ask('what', 'What?')
      .do('say', async (c) => void (await c.say(`You want ${String(c.state.what)}`)))
    await bot.start()
    for (const body of ['/help me', 'help', 'okay', 'order', '/help', 'x', 'order', '/stop', 'y', 'stop'])
      await provider.receive(body)
    await provider.waitForSends(10)
    expect(provider.texts).toEqual([
      'help me',
      'help ',
      'heard',
      'What?',
      'You want /help',
      'rest',
      'What?',
      'stopped true',
      'rest',
      'stopped false',
    ])
  })

  it('B2: hooks change what routing sees; false drops the message', async () => {
    const { bot, provider } = botWith()
    bot.before('message', (ctx) => {
      if (ctx.body === 'spam') return false
      ctx.body = ctx.body.toUpperCase()
      ctx.lang = 'pt-BR'
      return undefined
    })
    bot.hears('HELLO', (ctx) =>
      ctx.reply(`${ctx.body} ${ctx.message.body} ${ctx.text('core.conversation.interrupted')}`),
    )
    bot.onMessage((ctx) => ctx.reply('rest'))
    await bot.start()
    await provider.receive('spam')
    await provider.receive('hello')
    expect((await provider.nextSent()).text).toMatch(/^HELLO hello Desculpe/)
  })

  it('B3: an asynchronous conversation asks, and enters from a handler', async () => {
    const { bot, provider } = botWith()
    bot.conversation('survey', async (c, ctx) => {
      const name = await c.ask('Name?')
      await ctx.reply(`Hello ${name}, from ${ctx.chatId}`)
    })
    bot.command('survey', (ctx) => ctx.enter('survey'))
    await bot.start()
    await provider.receive('/survey')
    await provider.receive('Ana')
    await provider.waitForSends(2)
    expect(provider.texts).toEqual(['Name?', 'Hello Ana, from 100'])
  })

  it('API: definitions are frozen at start', async () => {
    const { bot } = botWith()
    await bot.start()
    expect(() => bot.command('x', () => undefined)).toThrow(/before bot.start/)
    expect(() => bot.flow('x')).toThrow(/has started/)
  })
})

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}
