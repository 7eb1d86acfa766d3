/** Hand-over through real bots: kept answers, fallbacks, acknowledgements (H1, H4, H6–H9, B5). */
import { afterEach, describe, expect, it } from '@jest/globals'
import type { Bot } from '../../src/index.js'
import { Mesh, type MeshOptions, type Replica } from './support/mesh.js'

let mesh: Mesh

afterEach(() => mesh.stop())

async function two(define: (bot: Bot) => void, options?: MeshOptions): Promise<[Replica, Replica]> {
  mesh = new Mesh(define, options)
  return [await mesh.add(), await mesh.add()]
}

/** Hangs after its answer on the first replica, until its signal aborts. */
function slowOnFirst(bot: Bot): void {
  bot.before('message', (ctx) => {
    if (ctx.body.startsWith('voice:')) ctx.body = ctx.body.slice(6)
  })
  bot
    .flow('pay', { on: 'pay' })
    .step('charge', async (c) => {
      const card = await c.ask('Card?')
      await c.say(`charging ${card}`)
      if (bot.name === 'replica-0') {
        await new Promise<void>((resolve) => c.signal.addEventListener('abort', () => resolve()))
      }
      c.state.card = card
    })
    .step('confirm', async (c) => void (await c.say(`${String(c.state.card)}, ${await c.ask('Sure?')}`)))
    .persistent()
  bot.onMessage((ctx) => ctx.reply(`rest ${ctx.body}`))
}

for (const placement of ['shared', 'separate'] as const) {
  for (const durability of [false, true]) {
    describe(`turns and data ${placement}, durability ${durability}`, () => {
      it('H7: a step cut at settleMs keeps its answer, with what hooks made of it', async () => {
        const [a, b] = await two(slowOnFirst, {
          placement,
          config: { durability },
          coordination: { settleMs: '10s' },
        })
        await mesh.tell(a, 'pay')
        await mesh.tell(a, 'voice:4242')
        await mesh.clock.advance(11_000)
        await mesh.tell(b, 'yes')
        // Sends of a repeated step are deduplicated only with durability (H11).
        const again = durability ? [] : ['charging 4242']
        expect(mesh.said).toEqual(['Card?', 'charging 4242', ...again, 'Sure?', '4242, yes'])
        expect(mesh.payloads(b, 'coordination:handover')).toMatchObject([{ name: 'pay', outcome: 'resumed' }])
        expect([...a.errors, ...b.errors]).toEqual([])
      })

      it('H4, H7: the same at an orderly stop in the middle of a step', async () => {
        const [a, b] = await two(slowOnFirst, { placement, config: { durability, drainMs: '2s' } })
        await mesh.tell(a, 'pay')
        await mesh.tell(a, '4242')
        await mesh.run(a.bot.stop())
        // With durability the record is there still: the step goes on although the chat does not write again (D1).
        if (durability) await mesh.until(() => mesh.said.at(-1) === 'Sure?', 60_000)
        await mesh.tell(b, 'yes')
        expect(mesh.said.slice(0, 2)).toEqual(['Card?', 'charging 4242'])
        expect(mesh.said.slice(-2)).toEqual(['Sure?', '4242, yes'])
      })
    })
  }

  it.each(['dies', 'is cut'])(
    `H8: an answer that no checkpoint holds is processed again (${placement}), replica %s`,
    async (how) => {
      const [a, b] = await two(
        (bot) => {
          bot
            .flow('form', { on: 'form' })
            .step('both', async (c) => {
              const first = await c.ask('One?')
              const second = await c.ask('Two?')
              if (bot.name === 'replica-0') {
                await new Promise<void>((resolve) => c.signal.addEventListener('abort', () => resolve()))
              }
              await c.say(`${first} ${second}`)
            })
            .persistent()
        },
        { placement, config: { durability: true }, coordination: { settleMs: '5s' }, leaseMs: 3000 },
      )
      await mesh.tell(a, 'form')
      await mesh.tell(a, '1')
      await mesh.tell(a, '2')
      await mesh.clock.advance(4000)
      if (how === 'dies') a.coordinator.crash()
      await mesh.until(() => mesh.said.length >= 3, 60_000)
      // The step starts over (H11): the answer woke it, and becomes nothing else.
      expect(mesh.said).toEqual(['One?', 'Two?', 'One?'])
      await mesh.tell(b, '1')
      await mesh.tell(b, '2')
      expect(mesh.said.slice(3)).toEqual(['Two?', '1 2'])
      expect(await b.bot.deadLetters.list()).toEqual([])
    },
  )
}

describe('conversations that cannot be forwarded', () => {
  const survey = (bot: Bot) => {
    bot.conversation('survey', async (c) => void (await c.say(`Hello ${await c.ask('Name?')}`)), {
      on: 'survey',
    })
    bot.onMessage((ctx) => ctx.reply(`rest ${ctx.body}`))
  }

  it("H6, B5: 'notify' says so in the writer's language, once", async () => {
    const [a, b] = await two(survey, { coordination: { handover: { fallback: 'notify' } } })
    await mesh.tell(a, 'survey')
    await mesh.run(b.provider.receive({ id: 'x', body: 'Ana', lang: 'es-MX' }))
    await mesh.tell(b, 'again')
    expect(mesh.said).toEqual(['Name?', expect.stringMatching(/conversación se interrumpió/), 'rest again'])
    expect(mesh.payloads(b, 'coordination:handover')).toMatchObject([
      { bot: 'replica-1', key: 'fake%3Atest/100', name: 'survey', outcome: 'notified', reason: 'async' },
    ])
  })

  it('H6: a function decides, with a context to act through', async () => {
    const [a, b] = await two(survey, {
      coordination: {
        handover: {
          fallback: async ({ name, kind, reason }, ctx) => {
            await ctx.reply(`${name} ${kind} ${reason}: ${ctx.body}`)
            return true
          },
        },
      },
    })
    await mesh.tell(a, 'survey')
    await mesh.tell(b, 'Ana')
    expect(mesh.said).toEqual(['Name?', 'survey async async: Ana'])
  })

  it("H1: 'forward' hands over flows that are not persistent", async () => {
    const [a, b] = await two(
      (bot) => {
        bot
          .flow('order', { on: 'order' })
          .ask('size', 'Size?')
          .step('end', async (c) => void (await c.say(String(c.state.size))))
      },
      { coordination: { handover: { flows: 'forward' } } },
    )
    await mesh.tell(a, 'order')
    await mesh.tell(b, 'M')
    expect(mesh.said).toEqual(['Size?', 'M'])
    expect(mesh.payloads(b, 'coordination:handover')).toMatchObject([{ outcome: 'forwarded' }])
  })

  it('H4: a bot that is stopped and started again goes on', async () => {
    const [a] = await two((bot) => {
      bot
        .flow('order', { on: 'order' })
        .ask('size', 'Size?')
        .step('end', (c) => c.say(String(c.state.size)))
        .persistent()
    })
    await mesh.tell(a, 'order')
    await mesh.run(a.bot.stop())
    await mesh.run(a.bot.start())
    await mesh.tell(a, 'XL')
    expect(mesh.said).toEqual(['Size?', 'XL'])
  })
})
