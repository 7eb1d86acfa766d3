/** What the timeout of a wait finds when whoever asked is gone (ADR 8, H6, H10, H11, T4). */
import { afterEach, describe, expect, it } from '@jest/globals'
import type { Bot } from '../../src/index.js'
import type { Mesh, MeshOptions, Replica } from './support/mesh.js'
import { asking, durableMesh, KEY, kill, TIMEOUT_MS } from './support/timeouts.js'

let mesh: Mesh

afterEach(() => mesh.stop())

async function one(define: (bot: Bot) => void, options?: MeshOptions): Promise<Replica> {
  mesh = durableMesh(define, options)
  return mesh.add()
}

describe('what the timeout finds', () => {
  it('not caught, it ends the conversation quietly', async () => {
    const a = await one((bot) => {
      bot.flow('order', { on: 'order' }).ask('size', 'Size?', { timeout: TIMEOUT_MS }).persistent()
      bot.onMessage((ctx) => ctx.reply(`rest ${ctx.body}`))
    })
    await mesh.tell(a, 'order')
    kill(a)
    const b = await mesh.add()
    await mesh.clock.advance(2 * TIMEOUT_MS)
    expect([await mesh.store.getCheckpoint(KEY), b.errors]).toEqual([null, []])
    await mesh.tell(b, 'M')
    expect(mesh.said).toEqual(['Size?', 'rest M'])
  })

  it('an error of its code is reported once, and ends the conversation', async () => {
    const a = await one(
      (bot) =>
        void bot
          .flow('order', { on: 'order' })
          .step('size', async (c) => {
            await c.ask('Size?', { timeout: TIMEOUT_MS }).catch(() => {
              throw new Error('mine')
            })
          })
          .persistent(),
    )
    await mesh.tell(a, 'order')
    kill(a)
    const b = await mesh.add()
    await mesh.clock.advance(5 * TIMEOUT_MS)
    expect(b.errors).toEqual([new Error('mine')])
    expect(await mesh.store.getCheckpoint(KEY)).toBeNull()
  })

  it('H11: of a later question it ends up at the first one: nobody is there to be asked again', async () => {
    const a = await one(
      (bot) =>
        void bot
          .flow('order', { on: 'order' })
          .step('both', async (c) => {
            try {
              await c.ask('Size?', { timeout: TIMEOUT_MS })
              await c.ask('Colour?', { timeout: TIMEOUT_MS })
            } catch {
              await c.say('Too late')
            }
          })
          .persistent(),
    )
    await mesh.tell(a, 'order')
    await mesh.tell(a, 'M')
    kill(a)
    await mesh.add()
    await mesh.clock.advance(5 * TIMEOUT_MS)
    expect(mesh.said).toEqual(['Size?', 'Colour?', 'Too late'])
  })

  it('the flow goes on from there, and its next wait is kept as well', async () => {
    const a = await one(
      (bot) =>
        void bot
          .flow<{ reminded?: number }>('remind', { on: 'remind' })
          .step('ask', async (c) => {
            const answer = await c.ask('Well?', { timeout: TIMEOUT_MS }).catch(() => null)
            if (answer !== null) return c.end()
            await c.say(`${bot.name} reminds you`)
            c.state.reminded = (c.state.reminded ?? 0) + 1
            return c.state.reminded < 3 ? c.goto('ask') : undefined
          })
          .persistent(),
    )
    await mesh.tell(a, 'remind')
    for (let n = 1; n <= 3; n++) {
      kill(mesh.replicas.at(-1)!)
      await mesh.add()
      await mesh.until(() => mesh.said.includes(`replica-${n} reminds you`))
      await mesh.settle()
    }
    expect(mesh.said).toEqual([
      ...['Well?', 'replica-1 reminds you'],
      ...['Well?', 'replica-2 reminds you'],
      ...['Well?', 'replica-3 reminds you'],
    ])
    expect(await mesh.store.getCheckpoint(KEY)).toBeNull()
  })

  it('H10: a replica that takes the chat by a message starts the wait again', async () => {
    const a = await one(
      (bot) =>
        void bot
          .flow('order', { on: 'order' })
          .step('size', async (c) => {
            const validate = (message: { body: string }) => message.body === 'M' || 'S, M or L?'
            const size = await c.ask('Size?', { timeout: TIMEOUT_MS, validate }).catch(() => 'late')
            await c.say(`${size} ${bot.name}`)
          })
          .persistent(),
    )
    await mesh.tell(a, 'order')
    await mesh.clock.advance(TIMEOUT_MS / 2)
    kill(a)
    const b = await mesh.add()
    await mesh.tell(b, 'XXL')
    await mesh.until(() => mesh.said.length === 2)
    await mesh.clock.advance(TIMEOUT_MS / 2)
    kill(b)
    await mesh.add()
    await mesh.clock.advance(TIMEOUT_MS / 2 - 1000)
    expect(mesh.said).toEqual(['Size?', 'S, M or L?'])
    await mesh.clock.advance(2 * TIMEOUT_MS)
    expect(mesh.said).toEqual(['Size?', 'S, M or L?', 'late replica-2'])
  })

  it('a command served elsewhere meanwhile leaves it as it is', async () => {
    const a = await one((bot) => {
      asking()(bot)
      bot.command('help', (ctx) => ctx.reply('help'), { interrupt: true })
    })
    await mesh.tell(a, 'order')
    const b = await mesh.add()
    await mesh.tell(b, '/help')
    kill(a)
    await mesh.clock.advance(2 * TIMEOUT_MS)
    expect(mesh.said).toEqual(['Welcome, 100', 'Size?', 'help', 'Too late, says replica-1'])
  })

  it('T4: a step that is cut at settleMs after its timeout is not run again and again', async () => {
    let runs = 0
    const a = await one(
      (bot) =>
        void bot
          .flow('order', { on: 'order' })
          .step('size', async (c) => {
            const size = await c.ask('Size?', { timeout: TIMEOUT_MS }).catch(() => null)
            if (size !== null) return void (await c.say(`Size ${size}`))
            runs += 1
            await new Promise<void>(() => undefined)
          })
          .persistent(),
      { coordination: { settleMs: '5s' } },
    )
    await mesh.tell(a, 'order')
    kill(a)
    const b = await mesh.add()
    await mesh.tell(b, 'order', { chatId: '200' })
    await mesh.clock.advance(10 * TIMEOUT_MS)
    // One chat's timeout came from the store, the other one's from the replica that asked.
    expect(runs).toBe(2)
    await mesh.tell(b, 'M')
    expect(mesh.said.at(-1)).toBe('Size M')
  })

  it('H6: code that has changed leaves it to the fallback, which answers the next message', async () => {
    const quiet = (): void => undefined
    const warnings: string[] = []
    const warn = (_details: object, message: string): void => void warnings.push(message)
    const a = await one(
      (bot) => {
        const flow = bot.flow('order', { on: 'order' })
        if (bot.name === 'replica-0') flow.ask('size', 'Size?', { timeout: TIMEOUT_MS })
        else flow.ask('other', 'Other?')
        flow.persistent()
      },
      {
        config: { logger: { debug: quiet, info: quiet, warn, error: quiet } },
        coordination: { handover: { fallback: 'notify', notifyMessage: 'Sorry' } },
      },
    )
    await mesh.tell(a, 'order')
    kill(a)
    const b = await mesh.add()
    await mesh.clock.advance(3 * TIMEOUT_MS)
    expect([mesh.said, mesh.payloads(b, 'coordination:handover')]).toEqual([['Size?'], []])
    expect(warnings).toEqual([expect.stringMatching(/cannot act here/)])
    expect(await mesh.store.journal.stranded(0, 10)).toEqual([])
    await mesh.tell(b, 'M')
    expect(mesh.said).toEqual(['Size?', 'Sorry'])
    expect(mesh.payloads(b, 'coordination:handover')).toMatchObject([
      { outcome: 'notified', reason: 'changed' },
    ])
  })

  it('H6: an asynchronous conversation has none; its marker stays for the next message', async () => {
    const a = await one(
      (bot) => {
        bot.conversation('survey', async (c) => void (await c.ask('Name?', { timeout: TIMEOUT_MS })), {
          on: 'survey',
        })
      },
      { coordination: { handover: { fallback: 'notify', notifyMessage: 'Sorry', ttl: '10m' } } },
    )
    await mesh.tell(a, 'survey')
    kill(a)
    const b = await mesh.add()
    await mesh.clock.advance(3 * TIMEOUT_MS)
    expect(mesh.said).toEqual(['Name?'])
    await mesh.tell(b, 'Ana')
    expect(mesh.said).toEqual(['Name?', 'Sorry'])
  })
})
