/** Durability: journal, outbox, dead letters (D1–D3, H8, T6). */
import { afterEach, describe, expect, it } from '@jest/globals'
import { DeadLetterError, SendError, type Bot } from '../../src/index.js'
import { FakeProvider } from '../../src/testing/index.js'
import { Mesh, type MeshOptions, type Replica } from './support/mesh.js'

let mesh: Mesh

afterEach(() => mesh.stop())

async function two(define: (bot: Bot) => void, options: MeshOptions = {}): Promise<[Replica, Replica]> {
  mesh = new Mesh(define, { ...options, config: { durability: true, drainMs: 1000, ...options.config } })
  return [await mesh.add(), await mesh.add()]
}

for (const placement of ['shared', 'separate'] as const) {
  describe(`with durability, turns and data ${placement}`, () => {
    it('scenario 17: a message is accepted once it is journalled, before its handler has ended', async () => {
      let release: () => void = () => undefined
      const [a] = await two(
        (bot) =>
          bot.onMessage(async (ctx) => {
            await new Promise<void>((resolve) => (release = resolve))
            await ctx.reply(ctx.body)
          }),
        { placement },
      )
      await mesh.tell(a, 'one')
      await mesh.tell(a, 'two')
      expect(mesh.said).toEqual([])
      release()
      await mesh.until(() => mesh.said.length === 1)
      await mesh.settle()
      release()
      await mesh.until(() => mesh.said.length === 2)
      expect(mesh.said).toEqual(['one', 'two'])
    })

    it('D1: what a dead replica had is handled by another one, though nobody delivers it again', async () => {
      const [a] = await two(
        (bot) =>
          bot.onMessage(async (ctx) => {
            if (bot.name === 'replica-0') await new Promise<void>(() => undefined)
            await ctx.reply(ctx.body)
          }),
        { placement, leaseMs: 3000 },
      )
      await mesh.tell(a, 'one')
      await mesh.tell(a, 'two')
      a.coordinator.crash()
      await mesh.until(() => mesh.said.length === 2, 10_000)
      expect(mesh.said).toEqual(['one', 'two'])
    })

    it('D1, scenario 5: a message whose replica died is handled once, though its chat never writes again', async () => {
      const hung = new Set<string>()
      const [a, b] = await two(
        (bot) =>
          bot.onMessage(async (ctx) => {
            if (bot.name === 'replica-0') {
              hung.add(ctx.body)
              await new Promise<void>(() => undefined)
            }
            await ctx.reply(`${bot.name} ${ctx.body}`)
          }),
        { placement, leaseMs: 3000 },
      )
      await mesh.tell(a, 'one', { id: 'one' })
      await mesh.tell(a, 'two', { id: 'two' })
      expect([...hung]).toEqual(['one'])
      a.coordinator.crash()
      // The platform delivers the first one again, to the replica that lives.
      await mesh.tell(b, 'one', { id: 'one' })
      await mesh.until(() => mesh.said.length === 2, 10_000)
      await mesh.clock.advance(20_000)
      expect(mesh.said).toEqual(['replica-1 one', 'replica-1 two'])
    })

    it('T6, scenario 14: a failed message is tried again before what came after it', async () => {
      let failures = 2
      const [a, b] = await two(
        (bot) =>
          bot.onMessage(async (ctx) => {
            if (ctx.body === 'A' && failures-- > 0) throw new Error('not yet')
            await ctx.reply(ctx.body)
          }),
        { placement },
      )
      await mesh.tell(a, 'A')
      await mesh.tell(b, 'B')
      await mesh.until(() => mesh.said.length === 2)
      expect(mesh.said).toEqual(['A', 'B'])
      expect([...a.errors, ...b.errors].map(String)).toEqual(['Error: not yet', 'Error: not yet'])
    })

    it('D3: after maxAttempts a message goes to the dead letters, is reported, listed, and retried', async () => {
      let broken = true
      const [a] = await two(
        (bot) =>
          bot.onMessage(async (ctx) => {
            if (ctx.body === 'A' && broken) throw new Error('broken')
            await ctx.reply(ctx.body)
          }),
        { placement, config: { durability: { maxAttempts: 3, retryMs: 100 } } },
      )
      await mesh.tell(a, 'A', { id: 'A' })
      await mesh.tell(a, 'B')
      await mesh.until(() => mesh.said.length === 1)
      expect(mesh.said).toEqual(['B'])
      const dead = a.errors.at(-1)
      expect(dead).toBeInstanceOf(DeadLetterError)
      expect(dead).toMatchObject({ details: { recordId: 'A', attempts: 3 }, cause: new Error('broken') })
      const [letter] = await a.bot.deadLetters.list()
      expect(letter).toMatchObject({ record: { id: 'A', lastError: 'Error: broken' } })
      broken = false
      expect(await a.bot.deadLetters.retry(letter?.key ?? '', 'A')).toBe(true)
      await mesh.until(() => mesh.said.length === 2)
      expect(mesh.said).toEqual(['B', 'A'])
    })

    it('D3: a ctx.user that can never be stored fails the attempt, and does not block its chat for ever', async () => {
      const [a] = await two(
        (bot) =>
          bot.onMessage(async (ctx) => {
            if (ctx.body === 'poison') ctx.user['self'] = ctx.user
            else await ctx.reply(ctx.body)
          }),
        { placement, config: { durability: { maxAttempts: 2, retryMs: 100 } } },
      )
      await mesh.tell(a, 'poison', { id: 'poison' })
      await mesh.tell(a, 'next')
      await mesh.until(() => mesh.said.length === 1, 60_000)
      expect(mesh.said).toEqual(['next'])
      expect(await a.bot.deadLetters.list()).toMatchObject([{ record: { id: 'poison', attempts: 2 } }])
      expect(a.errors.at(-1)).toBeInstanceOf(DeadLetterError)
    })

    it('D2: a repeated attempt does not send again what it had sent', async () => {
      let failures = 1
      const [a] = await two(
        (bot) =>
          bot.onMessage(async (ctx) => {
            await ctx.reply('first')
            await bot.send('elsewhere', 'note')
            if (failures-- > 0) throw new Error('after two sends')
            await ctx.reply('second')
            await ctx.reply('first')
          }),
        { placement },
      )
      await mesh.tell(a, 'go')
      await mesh.until(() => mesh.said.length === 4)
      await mesh.clock.advance(10_000)
      expect(mesh.said).toEqual(['first', 'note', 'second', 'first'])
    })

    it('D2, scenario 16: a send of unknown fate is not repeated, and stays marked as uncertain', async () => {
      const [a] = await two((bot) => bot.onMessage((ctx) => ctx.reply('once')), { placement })
      a.provider.failNextSends('uncertain')
      await mesh.tell(a, 'go')
      await mesh.clock.advance(20_000)
      expect(mesh.said).toEqual(['once'])
      expect(a.errors[0]).toBeInstanceOf(SendError)
      const entries = await mesh.store.outbox.entries('fake%3Atest/100')
      expect(entries).toMatchObject([{ status: 'uncertain', content: { text: 'once' } }])
    })

    it('scenario 16: a refused send is tried again in place', async () => {
      const [a] = await two((bot) => bot.onMessage((ctx) => ctx.reply('once')), { placement })
      a.provider.failNextSends('retryable')
      await mesh.tell(a, 'go')
      await mesh.until(() => mesh.said.length === 1)
      expect(a.errors).toEqual([])
    })

    it('T6: a message that gets no turn in time is reported, and handled later', async () => {
      let release: (() => void) | undefined
      const [a, b] = await two(
        (bot) =>
          bot.onMessage(async (ctx) => {
            if (ctx.body === 'long') await new Promise<void>((resolve) => (release = resolve))
            await ctx.reply(ctx.body)
          }),
        { placement, coordination: { turnWaitMs: 2000 } },
      )
      await mesh.tell(a, 'long')
      await mesh.tell(b, 'next')
      await mesh.clock.advance(2500)
      expect(b.errors).toMatchObject([{ code: 'COORDINATION_UNAVAILABLE' }])
      release?.()
      await mesh.until(() => mesh.said.length === 2)
      expect(mesh.said).toEqual(['long', 'next'])
    })

    it('D1: a record whose retry falls due while a timer of its chat is at work is handled right after it', async () => {
      let attempts = 0
      let release: (() => void) | undefined
      const [a] = await two(
        (bot) => {
          bot.conversation(
            'chat',
            async (c) => {
              c.idle('900ms', async () => new Promise<void>((resolve) => (release = resolve)))
              await c.ask('yes?')
            },
            { on: 'hello' },
          )
          bot.command(
            'pay',
            async (ctx) => {
              attempts += 1
              if (attempts === 1) throw new Error('not now')
              await ctx.reply('paid')
            },
            { interrupt: true },
          )
        },
        { placement },
      )
      await mesh.tell(a, 'hello')
      await mesh.tell(a, '/pay')
      await mesh.clock.advance(1500)
      expect({ attempts, idle: release !== undefined }).toEqual({ attempts: 1, idle: true })
      release?.()
      await mesh.settle()
      await mesh.clock.advance(1)
      await mesh.settle()
      expect(mesh.said).toEqual(['yes?', 'paid'])
    })

    it('N5: a shutdown is no attempt: the other replica handles what was cut', async () => {
      const [a, b] = await two(
        (bot) =>
          bot.onMessage(async (ctx) => {
            if (bot.name === 'replica-0') await new Promise<void>(() => undefined)
            await ctx.reply(`${bot.name} ${ctx.body}`)
          }),
        { placement, config: { durability: { maxAttempts: 1 } } },
      )
      await mesh.tell(a, 'one')
      await mesh.run(a.bot.stop())
      await mesh.until(() => mesh.said.length === 1, 60_000)
      expect(mesh.said).toEqual(['replica-1 one'])
      expect(await b.bot.deadLetters.list()).toEqual([])
    })
  })
}

describe('durability without coordination', () => {
  it('D1: what a process left is handled at its next start', async () => {
    const mine = new Mesh((bot) => bot.onMessage((ctx) => ctx.reply(ctx.body)))
    mesh = mine
    await mine.store.arrive('fake%3Atest/100', {
      messageId: 'x',
      timestamp: 0,
      message: new FakeProvider().message({ id: 'x', body: 'left over' }),
    })
    const { Bot: Make } = await import('../../src/index.js')
    const provider = new FakeProvider({ platform: mine.platform })
    const bot = new Make({ provider, store: mine.store, clock: mine.clock, durability: true })
    bot.onMessage((ctx) => ctx.reply(ctx.body))
    await mine.run(bot.start())
    await mine.until(() => mine.said.length === 1)
    await mine.run(provider.receive({ id: 'y', body: 'new' }))
    await mine.until(() => mine.said.length === 2)
    expect(mine.said).toEqual(['left over', 'new'])
    await mine.run(bot.stop())
  })
})
