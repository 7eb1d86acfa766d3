/** Bad values in the in-process store (scenario 29, D3): see bad-input.ts. */
import { describe, expect, it } from '@jest/globals'
import { Bot } from '@botmesh/core'
import { FakeProvider } from '@botmesh/core/testing'
import { badInputCases } from './bad-input.js'
import { CHAT_KEY } from './bed.js'
import { MemoryBed } from './memory-bed.js'

describe.each(['shared', 'separate'] as const)(
  'scenario 29, D2, D3, H2, H3, H7: bad values, turns and data %s',
  (placement) => {
    it.each(badInputCases().map((one) => [one.name, one] as const))('%s', async (_name, { play }) => {
      const bed = new MemoryBed(placement)
      await play(bed)
      await bed.close()
    })
  },
)

describe('scenario 29: bad values, one process alone', () => {
  it('a checkpoint that is corrupt is reported, and the chat goes on', async () => {
    const bed = new MemoryBed('shared')
    const provider = new FakeProvider({ platform: bed.platform })
    const bot = new Bot({ provider, store: bed.store, clock: bed.clock })
    const errors: unknown[] = []
    bot.on('error', ({ error }) => errors.push(error))
    bot.flow('order', { on: 'order' }).ask('size', 'Size?').persistent()
    bot.onMessage((ctx) => ctx.reply(`rest ${ctx.body}`))
    await bot.start()
    await bed.plant(CHAT_KEY, 'checkpoint', '{')
    for (const body of ['one', 'two']) {
      await provider.receive({ id: body, body })
      await bed.pass(0.1)
    }
    expect(bed.said).toEqual(['rest one', 'rest two'])
    expect(errors.map(String)).toEqual([expect.stringContaining(CHAT_KEY)])
    await bed.run(bot.stop())
  })
})
