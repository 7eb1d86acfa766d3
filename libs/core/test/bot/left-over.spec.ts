/** A message that waited behind a kept answer when its flow ended: its handlers are handlers like any other (H7, K4). */
import { afterEach, describe, expect, it } from '@jest/globals'
import type { LeaseLostError } from '../../src/index.js'
import { Mesh } from './support/mesh.js'

let mesh: Mesh
afterEach(() => mesh?.stop())

/** Resolves when it is called. */
function signal(): { given: Promise<void>; give: () => void } {
  let give: () => void = () => undefined
  const given = new Promise<void>((resolve) => (give = resolve))
  return { given, give: () => give() }
}

describe.each([false, true])('handlers of what a flow has left over, durability %s', (durability) => {
  /** The first answer's step is cut; the flow ends without another question. What is left over is given to `handler`. */
  async function leaveOver(
    handler: (send: (text: string) => Promise<unknown>) => Promise<void>,
  ): Promise<void> {
    let times = 0
    mesh = new Mesh(
      (bot) => {
        bot
          .flow('order', { on: 'order' })
          .step('size', async (c) => {
            const size = await c.ask('Size?')
            if (times++ === 0) await c.sleep('1h')
            await c.say(`done ${size}`)
          })
          .persistent()
        bot.onMessage((ctx) => handler((text) => bot.send(ctx.chatId, `${ctx.body}: ${text}`)))
      },
      { config: { durability }, coordination: { settleMs: '5s' } },
    )
    const one = await mesh.add()
    await mesh.tell(one, 'order')
    await mesh.tell(one, 'M')
    await mesh.until(() => mesh.payloads(one, 'coordination:lease-lost').length === 1)
    await mesh.tell(one, 'hello')
  }

  it.each(['trigger', 'handler'])(
    'B3: what enters a flow is its message, not the one after it (%s)',
    async (by) => {
      let times = 0
      mesh = new Mesh(
        (bot) => {
          const flow = bot.flow('order', { on: 'order' }).step('size', async (c) => {
            await c.ask('Size?')
            if (times++ < 2) await c.sleep('1h')
          })
          flow.persistent()
          bot
            .flow('pizza', by === 'trigger' ? { on: /^pizza/ } : {})
            .step('first', async (c) => void (await c.say(`entered by ${c.message.body}`)))
            .ask('more', 'More?')
            .step('last', async (c) => void (await c.say(`more: ${c.message.body}`)))
          bot.onMessage((ctx) => ctx.enter('pizza'))
        },
        { config: { durability }, coordination: { settleMs: '5s' } },
      )
      const one = await mesh.add()
      for (const body of ['order', 'M', 'pizza, please']) await mesh.tell(one, body)
      await mesh.until(() => mesh.payloads(one, 'coordination:lease-lost').length === 2)
      await mesh.tell(one, 'no')
      await mesh.until(() => mesh.payloads(one, 'message:handled').length === 4)
      expect(mesh.said).toEqual(['Size?', 'entered by pizza, please', 'More?', 'more: no'])
    },
  )

  it('B2: what outlives its handler in good order may still send, outside of any turn', async () => {
    const later = signal()
    let late: Promise<unknown> | undefined
    await leaveOver(async (send) => {
      await send('now')
      late = later.given.then(() => send('later'))
    })
    await mesh.until(() => mesh.payloads(mesh.replicas[0]!, 'message:handled').length === 3)
    later.give()
    await mesh.run(late!)
    expect(mesh.said).toEqual(['Size?', 'done M', 'hello: now', 'hello: later'])
  })

  it('T4, K4: what is cut at settleMs can do nothing any more', async () => {
    const later = signal()
    let late: Promise<unknown> | undefined
    await leaveOver(async (send) => {
      await later.given
      late ??= send('too late').catch((error: LeaseLostError) => error.reason)
    })
    const one = mesh.replicas[0]!
    await mesh.until(() => mesh.payloads(one, 'coordination:lease-lost').length === 2)
    later.give()
    await mesh.until(() => late !== undefined)
    await expect(mesh.run(late!)).resolves.toBe('settled')
  })
})
