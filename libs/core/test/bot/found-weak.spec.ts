/** What was found by reading rather than by failing: each would go wrong without its mend. */
import { afterEach, describe, expect, it } from '@jest/globals'
import { Bot, MemoryStore, type BotConfig, type Logger } from '../../src/index.js'
import { FakeProvider, ManualClock } from '../../src/testing/index.js'
import { Mesh } from './support/mesh.js'

let mesh: Mesh | undefined

afterEach(async () => {
  await mesh?.stop()
  mesh = undefined
})

function recording() {
  const lines: { level: string; details: object; message: string }[] = []
  const at = (level: string) => (details: object, message: string) =>
    void lines.push({ level, details, message })
  const logger: Logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  return { lines, logger }
}

async function alone(config: Partial<BotConfig>, define: (bot: Bot) => void = () => undefined) {
  const clock = new ManualClock()
  const provider = new FakeProvider()
  const store = new MemoryStore({ clock })
  const bot = new Bot({ provider, store, clock, ...config })
  define(bot)
  await bot.start()
  return { clock, provider, store, bot }
}

describe('revisions', () => {
  it('K2: without coordination no two writes of a checkpoint have the same one, across restarts too', async () => {
    const flow = (bot: Bot) =>
      void bot.flow('order', { on: 'order' }).ask('a', 'A?').ask('b', 'B?').ask('c', 'C?').persistent()
    const first = await alone({}, flow)
    const seen: (string | undefined)[] = []
    for (const body of ['order', '1', '2']) {
      await first.provider.receive({ body, chatId: '1' })
      await first.clock.settle()
      seen.push((await first.store.getCheckpoint('fake%3Atest/1'))?.revision)
    }
    await first.bot.stop()
    await first.clock.advance(1)
    const { clock, store } = first
    const again = await alone({ store, clock }, flow)
    await again.provider.receive({ body: 'order', chatId: '2' })
    await clock.settle()
    seen.push((await store.getCheckpoint('fake%3Atest/2'))?.revision)
    await again.bot.stop()
    expect(seen.every((revision) => /^[1-9]\d*:\d+$/.test(revision ?? ''))).toBe(true)
    expect(new Set(seen).size).toBe(4)
  })
})

describe('durability', () => {
  it('D1: in memory and without coordination it warns at start; without durability it does not', async () => {
    const { lines, logger } = recording()
    const quiet = await alone({ logger })
    await quiet.bot.stop()
    const warnings = () => lines.filter(({ level }) => level !== 'info')
    expect(warnings()).toEqual([])
    const durable = await alone({ logger, durability: true })
    await durable.bot.stop()
    expect(warnings().map(({ level, message }) => `${level} ${message}`)).toEqual([
      expect.stringMatching(/^warn With durability .* memory of this process/),
    ])
  })

  it('D3: a failure that a later holder makes void is not counted, dead-lettered or tried again here', async () => {
    const replicas = new Mesh((bot) => void bot.onMessage(() => Promise.reject(new Error('boom'))), {
      placement: 'separate',
      config: { durability: { maxAttempts: 1 } },
    })
    mesh = replicas
    const a = await replicas.add()
    const fail = replicas.store.journal.fail.bind(replicas.store.journal)
    let asked = 0
    // Somebody has opened the chat under a later fence just before.
    replicas.store.journal.fail = async (key, id, fence, ...rest) => {
      asked += 1
      await replicas.store.openState(key, fence + 1)
      return fail(key, id, fence, ...rest)
    }
    await replicas.tell(a, 'hi')
    expect(asked).toBe(1)
    expect(a.errors.map(String)).toEqual([expect.stringContaining('boom')])
    expect(replicas.payloads(a, 'coordination:lease-lost')).toMatchObject([{ reason: 'superseded' }])
    expect(await a.bot.deadLetters.list()).toEqual([])
    replicas.store.journal.fail = fail
  })
})

describe('turns here, data elsewhere', () => {
  it('T3, K3: the next turn of this replica finds the copy as the commit left it, however late the release is answered', async () => {
    const replicas = new Mesh(
      (bot) => {
        bot
          .flow('order', { on: 'order' })
          .step('both', async (c) => {
            const first = await c.ask('A?')
            await c.say(`${first} ${await c.ask('B?')}`)
          })
          .persistent()
        bot.onMessage((ctx) => ctx.reply(`rest ${ctx.body}`))
      },
      { placement: 'separate' },
    )
    mesh = replicas
    const a = await replicas.add()
    const { turns } = a.coordinator
    const take = turns.take.bind(turns)
    // The release takes effect, and the next ticket is granted, before this replica hears that it did.
    turns.take = async (key, options) => {
      const turn = await take(key, options)
      if (turn === 'duplicate') return turn
      const release = turn.release.bind(turn)
      turn.release = async (how) => {
        await release(how)
        await new Promise<void>((resolve) => void replicas.clock.setTimeout(resolve, 100))
      }
      return turn
    }
    await replicas.tell(a, 'order')
    const both = ['1', '2', '3'].map((body) => a.provider.receive({ body, id: body }))
    await replicas.clock.advance(2000)
    await Promise.all(both)
    expect(replicas.said).toEqual(['A?', 'B?', '1 2', 'rest 3'])
    expect(replicas.payloads(a, 'coordination:handover')).toEqual([])
    expect(a.errors).toEqual([])
  })
})

describe('loggers', () => {
  it('a coordinator and a store that were given none log through the bot they belong to; others keep their own', async () => {
    const [ours, own] = [recording(), recording()]
    mesh = new Mesh(() => undefined, { config: { logger: ours.logger } })
    const a = await mesh.add()
    const b = mesh.prepare()
    b.coordinator.useLogger(own.logger)
    await mesh.run(b.bot.start())
    const begun = ({ lines }: typeof ours) =>
      lines.filter(({ message }) => message === 'session begun').length
    expect([begun(ours), begun(own)]).toEqual([1, 1])
    expect(a.coordinator.status.status).toBe('live')
  })
})
