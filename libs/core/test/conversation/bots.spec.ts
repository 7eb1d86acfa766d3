/** Conversations through real bots: two replicas on the in-process hub, with turns and data together or apart. */
import { afterEach, describe, expect, it } from '@jest/globals'
import {
  Bot,
  MemoryStore,
  type BotConfig,
  type BotEvents,
  type CoordinationOptions,
  type Coordinator,
} from '../../src/index.js'
import {
  FakePlatform,
  FakeProvider,
  MemoryCoordinationHub,
  MemoryCoordinator,
} from '../../src/testing/index.js'

type Place = 'turns and data together' | 'turns and data apart'
const PLACES: Place[] = ['turns and data together', 'turns and data apart']

interface Replica {
  bot: Bot
  provider: FakeProvider
  coordinator: Coordinator
  events: Omit<BotEvents['coordination:handover'], 'bot' | 'key'>[]
  errors: unknown[]
  /** Hands in a message and waits until it was worked off. */
  say(body: string): Promise<void>
}

const nothing = (): void => undefined
const running: Bot[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((bot) => bot.stop()))
})

/** Two replicas of one bot. */
async function pair(
  place: Place,
  define: (bot: Bot, name: 'a' | 'b') => void,
  config: Partial<BotConfig> & { coordinate?: Partial<CoordinationOptions> } = {},
) {
  const store = new MemoryStore()
  const hub = new MemoryCoordinationHub()
  const platform = new FakePlatform()
  const { coordinate, ...rest } = config
  let ids = 0
  const make = async (name: 'a' | 'b'): Promise<Replica> => {
    const provider = new FakeProvider({ platform })
    const options = { leaseMs: 1_000, replicaId: name }
    const coordinator =
      place === 'turns and data together'
        ? store.coordinator(options)
        : new MemoryCoordinator({ hub, ...options })
    const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }
    const bot = new Bot({ provider, store, logger, coordination: { coordinator, ...coordinate }, ...rest })
    define(bot, name)
    const events: Replica['events'] = []
    const errors: unknown[] = []
    bot.on('coordination:handover', ({ bot: _bot, key: _key, ...event }) => events.push(event))
    bot.on('error', ({ error }) => errors.push(error))
    running.push(bot)
    await bot.start()
    const say = async (body: string): Promise<void> => {
      const id = `x${++ids}`
      const handled = new Promise<void>((resolve) => {
        bot.on('message:handled', ({ message }) => {
          if (message.id === id) resolve()
        })
      })
      await provider.receive({ id, body })
      await handled
    }
    return { bot, provider, coordinator, events, errors, say }
  }
  const said = () => platform.sent.map((send) => send.text)
  return { a: await make('a'), b: await make('b'), said, platform, store }
}

function gate() {
  let open = (): void => undefined
  let reach = (): void => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  const reached = new Promise<void>((resolve) => (reach = resolve))
  return { opened, open: () => open(), reached, reach: () => reach() }
}

const order = (bot: Bot): void =>
  void bot
    .flow<{ size: string; address: string }>('order', { on: 'order' })
    .step('size', async (c) => {
      await c.ctx.reply('Hello')
      c.state.size = await c.ask('Size?', { validate: (m) => m.body.length === 1 || 'One letter' })
    })
    .ask('address', 'Address?')
    .do('end', (c) => c.say(`${c.state.size} to ${c.state.address}`))
    .persistent()

describe.each(PLACES)('%s', (place) => {
  describe.each([false, true])('durability: %s', (durability) => {
    it('K1, H9: a persistent flow goes on from replica to replica, one reply each', async () => {
      const { a, b, said } = await pair(place, order, { durability })
      await a.say('order')
      await b.say('XL')
      await a.say('M')
      await b.say('Calle 1')
      expect(said()).toEqual(['Hello', 'Size?', 'One letter', 'Address?', 'M to Calle 1'])
      expect([...a.events, ...b.events].map((event) => event.outcome)).toEqual([
        'resumed',
        'resumed',
        'resumed',
      ])
      expect([...a.errors, ...b.errors]).toEqual([])
    })

    it('T4, H7, K4: a step cut at settleMs keeps its answer; its late send has no effect', async () => {
      const work = gate()
      const late: unknown[] = []
      const define = (bot: Bot, name: string): void =>
        void bot
          .flow('f', { on: 'f' })
          .step('s', async (c) => {
            const answer = await c.ask('A?')
            await c.say('working')
            if (name === 'a') {
              work.reach()
              await work.opened
              await c.say('late').catch((error: unknown) => late.push(error))
              await c.ctx.reply('late').catch((error: unknown) => late.push(error))
            }
            await c.say(`got ${answer}`)
          })
          .ask('b', 'B?')
          .persistent()
      const { a, b, said, store } = await pair(place, define, { durability, coordinate: { settleMs: 30 } })
      await a.say('f')
      await a.say('one')
      const kept = (await store.getCheckpoint('fake%3Atest/100'))?.answer
      expect(kept).toMatchObject(durability ? { recordId: 'x2' } : { message: { body: 'one' } })
      await b.say('two')
      work.open()
      await a.say('again')
      // D2: with durability the repeated step finds that it has said this already.
      const working = durability ? ['working'] : ['working', 'working']
      expect(said()).toEqual(['A?', ...working, 'got one', 'B?'])
      expect(late).toHaveLength(2)
    })

    it('L1, H11: the holder dies inside .do: another goes on', async () => {
      const work = gate()
      const define = (bot: Bot, name: string): void =>
        void bot
          .flow('f', { on: 'f' })
          .ask('a', 'A?')
          .do('work', async (c) => {
            await c.say('working')
            if (name === 'a') {
              work.reach()
              await new Promise(() => undefined)
            }
            await c.say(`done ${String((c.state as { a?: string }).a)}`)
          })
          .persistent()
      const { a, b, said } = await pair(place, define, { durability })
      await a.say('f')
      const { coordinator } = a
      await a.provider.receive({ id: 'answer', body: 'one' })
      await work.reached
      if (coordinator instanceof MemoryCoordinator) coordinator.crash()
      // Without durability the next message wakes it; with it the record that is still open does (D1).
      if (durability) await b.provider.waitForSends(1)
      else await b.say('hello?')
      await b.provider.waitForSends(durability ? 1 : 2)
      expect(said()).toEqual(
        durability ? ['A?', 'working', 'done one'] : ['A?', 'working', 'working', 'done one'],
      )
      expect(b.events).toEqual([{ name: 'f', outcome: 'resumed' }])
    })

    it('H6: an asynchronous conversation that changes hands is told by the fallback', async () => {
      const define = (bot: Bot): void => {
        bot.conversation('survey', async (c) => void (await c.ask(`One? ${await c.ask('Zero?')}`)))
        bot.command('survey', (ctx) => ctx.enter('survey'))
        bot.onMessage((ctx) => ctx.reply('routed'))
      }
      const { a, b, said } = await pair(place, define, {
        durability,
        coordinate: { handover: { fallback: 'notify', notifyMessage: 'Sorry' } },
      })
      await a.say('/survey')
      await a.say('0')
      await b.say('1')
      await a.say('2')
      expect(said()).toEqual(['Zero?', 'One? 0', 'Sorry', 'routed'])
      expect(b.events).toEqual([{ name: 'survey', outcome: 'notified', reason: 'async' }])
    })

    it('H1: a plain flow is forwarded if asked to, and lost otherwise', async () => {
      const define = (bot: Bot): void => {
        bot.flow('f', { on: 'f' }).ask('a', 'A?').ask('b', 'B?')
        bot.onMessage((ctx) => ctx.reply('routed'))
      }
      const lost = await pair(place, define, { durability })
      for (const [who, body] of [
        ['a', 'f'],
        ['b', '1'],
        ['a', '2'],
      ] as const)
        await lost[who].say(body)
      expect(lost.said()).toEqual(['A?', 'routed', 'routed'])
      const kept = await pair(place, define, { durability, coordinate: { handover: { flows: 'forward' } } })
      for (const [who, body] of [
        ['a', 'f'],
        ['b', '1'],
        ['a', '2'],
        ['b', '3'],
      ] as const)
        await kept[who].say(body)
      expect(kept.said()).toEqual(['A?', 'B?', 'routed'])
      expect(kept.b.events).toEqual([{ name: 'f', outcome: 'forwarded' }])
    })

    it('T5, scenario 31: only the replica that has the chat acts on a timeout, once', async () => {
      const define = (bot: Bot): void =>
        void bot
          .flow('f', { on: 'f' })
          .step('s', async (c) => {
            for (const question of ['A?', 'B?']) {
              await c.ask(question, { timeout: '80ms' }).catch(() => c.say(`late ${question}`))
            }
          })
          .persistent()
      const { a, b, said, store } = await pair(place, define, { durability })
      await a.say('f')
      await b.say('1')
      await b.provider.waitForSends(2)
      await until(async () => (await store.getCheckpoint('fake%3Atest/100')) === null)
      expect(said()).toEqual(['A?', 'B?', 'late B?'])
      expect(a.provider.texts).toEqual(['A?'])
    })
  })

  it('D2, D3, H8: a step that failed is tried again from its checkpoint, and its sends are not repeated', async () => {
    let failures = 2
    const define = (bot: Bot): void =>
      void bot
        .flow('f', { on: 'f' })
        .step('s', async (c) => {
          await c.say('Hello')
          const answer = await c.ask('A?')
          await c.say(`trying ${answer}`)
          if (failures-- > 0) throw new Error('down')
          await c.say(`did ${answer}`)
        })
        .persistent()
    const { a, said } = await pair(place, define, { durability: { retryMs: 5 } })
    await a.say('f')
    await a.say('one')
    expect(said()).toEqual(['Hello', 'A?', 'trying one', 'did one'])
    expect(a.errors.map(String)).toEqual(['Error: down', 'Error: down'])
  })

  it('H4: after an orderly stop in the middle of a step its answer is kept, and another replica goes on', async () => {
    const work = gate()
    const define = (bot: Bot, name: string): void =>
      void bot
        .flow('f', { on: 'f' })
        .step('s', async (c) => {
          const answer = await c.ask('A?')
          if (name === 'a') {
            work.reach()
            await work.opened
          }
          await c.say(`got ${answer}`)
        })
        .persistent()
    const { a, b, said } = await pair(place, define, { drainMs: 200 })
    await a.say('f')
    await a.provider.receive({ id: 'answer', body: 'one' })
    await work.reached
    await a.bot.stop()
    await b.say('two')
    work.open()
    expect(said()).toEqual(['A?', 'got one'])
    expect(b.events).toEqual([{ name: 'f', outcome: 'resumed' }])
  })
})

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10))
}
