/** Bots that coordinate: turns, hand-over, freezing, suspension, over both placements of turns and data. */
import { afterEach, describe, expect, it } from '@jest/globals'
import { CoordinationUnavailableError, LeaseLostError, type Bot } from '../../src/index.js'
import { Mesh, type MeshOptions, type Replica } from './support/mesh.js'

let mesh: Mesh

afterEach(() => mesh.stop())

async function two(define: (bot: Bot) => void, options?: MeshOptions): Promise<[Replica, Replica]> {
  mesh = new Mesh(define, options)
  return [await mesh.add(), await mesh.add()]
}

function order(bot: Bot): void {
  bot
    .flow('order', { on: 'order' })
    .ask('size', 'Size?')
    .ask('colour', 'Colour?')
    .do('done', async (c) => void (await c.say(`${String(c.state.size)} ${String(c.state.colour)}`)))
    .persistent()
  bot.onMessage((ctx) => ctx.reply(`rest ${ctx.body}`))
}

for (const placement of ['shared', 'separate'] as const) {
  describe(`two replicas, turns and data ${placement}`, () => {
    it('K1: a persistent flow goes on on the other replica, at its question', async () => {
      const [a, b] = await two(order, { placement })
      await mesh.tell(a, 'order')
      await mesh.tell(b, 'M')
      await mesh.tell(a, 'red')
      expect(mesh.said).toEqual(['Size?', 'Colour?', 'M red'])
      expect(mesh.payloads(b, 'coordination:handover')).toMatchObject([{ name: 'order', outcome: 'resumed' }])
      await mesh.tell(b, 'hello')
      expect(mesh.said.at(-1)).toBe('rest hello')
    })

    it('K3: a copy that only memory holds is dropped once the other replica had the chat', async () => {
      const [a, b] = await two(
        (bot) => {
          bot.conversation('survey', async (c) => void (await c.say(`You are ${await c.ask('Name?')}`)), {
            on: 'survey',
          })
          bot.onMessage((ctx) => ctx.reply(`rest ${ctx.body}`))
        },
        { placement },
      )
      await mesh.tell(a, 'survey')
      await mesh.tell(b, 'hello')
      await mesh.tell(a, 'Ana')
      expect(mesh.said).toEqual(['Name?', 'rest hello', 'rest Ana'])
    })

    it('K3: a stale copy is dropped also when the message was for an interrupting command', async () => {
      const [a, b] = await two(
        (bot) => {
          bot.conversation('survey', async (c) => void (await c.say(`You are ${await c.ask('Name?')}`)), {
            on: 'survey',
          })
          bot.command('ping', (ctx) => ctx.reply('pong'), { interrupt: true })
          bot.onMessage((ctx) => ctx.reply(`rest ${ctx.body}`))
        },
        { placement },
      )
      await mesh.tell(a, 'survey')
      await mesh.tell(b, 'hello')
      await mesh.tell(a, 'ping')
      await mesh.tell(a, 'Ana')
      expect(mesh.said).toEqual(['Name?', 'rest hello', 'pong', 'rest Ana'])
    })

    it('scenario 13: ten messages over two replicas: in ticket order, and no update of ctx.user is lost', async () => {
      const [a, b] = await two(
        (bot) =>
          bot.onMessage(async (ctx) => {
            const count = Number(ctx.user.count ?? 0)
            await Promise.resolve()
            ctx.user.count = count + 1
            await ctx.reply(`${ctx.body}:${count + 1}`)
          }),
        { placement },
      )
      const arrivals = Array.from({ length: 10 }, (_, i) =>
        (i % 2 === 0 ? a : b).provider.receive({ id: `m${i}`, body: `m${i}` }),
      )
      await mesh.run(Promise.all(arrivals))
      await mesh.until(() => mesh.said.length === 10)
      expect(mesh.said).toEqual(Array.from({ length: 10 }, (_, i) => `m${i}:${i + 1}`))
      expect([...a.errors, ...b.errors]).toEqual([])
    })

    it('Z3: a copy of a handled message that reaches the other replica is dropped', async () => {
      const [a, b] = await two(order, { placement })
      await mesh.tell(a, 'one', { id: 'same' })
      await mesh.tell(b, 'one', { id: 'same' })
      expect(mesh.said).toEqual(['rest one'])
    })

    it('T4, K4: a step that runs longer than settleMs is stopped before the turn is released', async () => {
      const late: unknown[] = []
      const [a, b] = await two(
        (bot) => {
          bot
            .flow('slow', { on: 'slow' })
            .ask('go', 'Go?')
            .do('work', async (c) => {
              if (c.state.go === 'quick') return void (await c.say('done'))
              const { signal } = c
              await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
              await c.say('too late').catch((error: unknown) => late.push(error))
              await bot.send('100', 'also late').catch((error: unknown) => late.push(error))
              await c.ctx.reply('late too').catch((error: unknown) => late.push(error))
            })
            .persistent()
          bot.onMessage((ctx) => ctx.reply(`rest ${ctx.body}`))
        },
        { placement, coordination: { settleMs: '10s' } },
      )
      await mesh.tell(a, 'slow')
      await mesh.tell(a, 'slowly')
      const waiting = b.provider.receive('next')
      await mesh.settle()
      expect(late).toEqual([])
      await mesh.clock.advance(10_000)
      await mesh.run(waiting)
      await mesh.settle()
      expect(late).toHaveLength(3)
      for (const error of late) expect(error).toMatchObject({ code: 'LEASE_LOST', reason: 'settled' })
      expect(mesh.said[0]).toBe('Go?')
      expect(mesh.said).not.toContain('too late')
      const lost = mesh.payloads(a, 'coordination:lease-lost')
      expect(lost).toEqual([{ bot: 'replica-0', key: 'fake%3Atest/100', reason: 'settled' }])
    })

    it('scenario 2: a handler that awaits three leases keeps its turn', async () => {
      let release: () => void = () => undefined
      const [a, b] = await two(
        (bot) =>
          bot.onMessage(async (ctx) => {
            if (ctx.body === 'long') await new Promise<void>((resolve) => (release = resolve))
            await ctx.reply(ctx.body)
          }),
        { placement },
      )
      await mesh.tell(a, 'long')
      const waiting = b.provider.receive('next')
      await mesh.clock.advance(45_000)
      expect(mesh.said).toEqual([])
      release()
      await mesh.run(waiting)
      await mesh.until(() => mesh.said.length === 2)
      expect(mesh.said).toEqual(['long', 'next'])
    })

    it('scenario 2, L2: a handler frozen for a lease loses its turn; its late send is refused', async () => {
      const refused: unknown[] = []
      let thaw: () => void = () => undefined
      const [a, b] = await two(
        (bot) =>
          bot.onMessage(async (ctx) => {
            if (ctx.body === 'freeze') {
              await new Promise<void>((resolve) => (thaw = resolve))
              await ctx.reply('late').catch((error: unknown) => refused.push(error))
            } else await ctx.reply(ctx.body)
          }),
        { placement },
      )
      await mesh.tell(a, 'freeze')
      a.clock.pause()
      await mesh.clock.advance(15_000)
      a.clock.resume()
      thaw()
      await mesh.settle()
      expect(refused).toMatchObject([{ code: 'LEASE_LOST' }])
      await mesh.until(() => mesh.payloads(a, 'coordination:lease-lost').length > 0)
      const next = b.provider.receive('next')
      await mesh.run(next)
      await mesh.until(() => mesh.said.length === 1)
      expect(mesh.said).toEqual(['next'])
      expect(a.errors).toEqual([])
    })

    it('T6, scenario 6: a message that waits longer than turnWaitMs is reported', async () => {
      let release: () => void = () => undefined
      const [a, b] = await two(
        (bot) => bot.onMessage(() => new Promise<void>((resolve) => (release = resolve))),
        { placement, coordination: { turnWaitMs: '3s' } },
      )
      await mesh.tell(a, 'long')
      await mesh.tell(b, 'next')
      await mesh.clock.advance(3100)
      expect(b.errors).toHaveLength(1)
      expect(b.errors[0]).toBeInstanceOf(CoordinationUnavailableError)
      expect(b.errors[0]).toMatchObject({ details: { why: 'timeout' } })
      release()
    })

    it('T5, scenario 31: the timer of a copy that was served elsewhere does nothing; the new owner’s acts once', async () => {
      const [a, b] = await two(
        (bot) => {
          bot
            .flow('quiz', { on: 'quiz' })
            .step('ask', async (c) => {
              try {
                c.state.first ??= await c.ask('One?', { timeout: '1m' })
              } catch {
                await c.say('time is up')
                return c.end()
              }
              return c.goto('second')
            })
            .step('second', async (c) => {
              try {
                await c.ask('Two?', { timeout: '1m' })
              } catch {
                await c.say('time is up, second')
              }
            })
            .persistent()
        },
        { placement },
      )
      await mesh.tell(a, 'quiz')
      await mesh.clock.advance(30_000)
      await mesh.tell(b, 'answer')
      await mesh.clock.advance(45_000)
      expect(mesh.said).toEqual(['One?', 'Two?'])
      await mesh.clock.advance(60_000)
      expect(mesh.said).toEqual(['One?', 'Two?', 'time is up, second'])
    })

    it('H4: after an orderly stop the other replica goes on, at once', async () => {
      const [a, b] = await two(order, { placement })
      await mesh.tell(a, 'order')
      await mesh.run(a.bot.stop())
      await mesh.tell(b, 'L')
      expect(mesh.said).toEqual(['Size?', 'Colour?'])
      await mesh.tell(b, 'blue')
      expect(mesh.said.at(-1)).toBe('L blue')
    })

    it('scenario 3: after the holder died the next message is handled within leaseMs plus a second', async () => {
      const [a, b] = await two(
        (bot) =>
          bot.onMessage((ctx) =>
            ctx.body === 'hang' ? new Promise<void>(() => undefined) : ctx.reply(ctx.body),
          ),
        { placement, leaseMs: 5000, config: { drainMs: 100 } },
      )
      await mesh.tell(a, 'hang')
      a.coordinator.crash()
      const next = b.provider.receive('next')
      await mesh.clock.advance(6000)
      await mesh.run(next)
      expect(mesh.said).toEqual(['next'])
    })

    it('N5: a stop cuts a handler that does not end, and releases its turn at once', async () => {
      const late: unknown[] = []
      let go: () => void = () => undefined
      const [a, b] = await two(
        (bot) =>
          bot.onMessage(async (ctx) => {
            if (ctx.body !== 'hang') return ctx.reply(ctx.body)
            await new Promise<void>((resolve) => (go = resolve))
            return ctx.reply('late').catch((error: unknown) => late.push(error))
          }),
        { placement, config: { drainMs: '4s' } },
      )
      await mesh.tell(a, 'hang')
      const next = b.provider.receive('next')
      await mesh.run(a.bot.stop())
      await mesh.run(next)
      await mesh.settle()
      go()
      await mesh.settle()
      expect(mesh.said).toEqual(['next'])
      expect(late).toMatchObject([{ code: 'LEASE_LOST', reason: 'stopped' }])
      expect(late[0]).toBeInstanceOf(LeaseLostError)
    })
  })
}
