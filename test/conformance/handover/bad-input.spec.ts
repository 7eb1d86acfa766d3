/**
 * Values in the store that no version of this library would have written so: each is reported once, with its key, and
 * moved out of the way; the chat goes on, and nothing fails again and again (scenario 29, D3).
 */
import { describe, expect, it } from '@jest/globals'
import type { Bot } from '@botmesh/core'
import { CHAT_KEY, type Replica } from './bed.js'
import { MemoryBed } from './memory-bed.js'

const checkpoint = (more: object) =>
  JSON.stringify({
    v: 1,
    name: 'order',
    kind: 'flow',
    step: 'size',
    visit: 1,
    state: {},
    fingerprint: 'f',
    revision: '7:1',
    wait: { question: 0, sends: 1 },
    ...more,
  })
const marker = (more: object) =>
  JSON.stringify({ v: 1, name: 'survey', kind: 'async', reason: 'async', ...more })

/** Text in the store; the conversation that it may be of is lost with it. */
const UNREADABLE = [
  ['checkpoint', 'corrupt', '{"v":1,"name":"ord'],
  ['checkpoint', 'of an unknown version', checkpoint({ v: 2 })],
  ['checkpoint', 'not an object', '"order"'],
  ['checkpoint', 'empty', ''],
  ['marker', 'corrupt', '{{'],
  ['marker', 'of an unknown version', marker({ v: 99 })],
  ['marker', 'null', 'null'],
] as const

/** Readable, but nothing to go on from: told by the engine, and removed. */
const UNUSABLE = [
  ['checkpoint', 'without a visit', checkpoint({ visit: 'one' })],
  ['checkpoint', 'without a state', checkpoint({ state: null })],
  ['checkpoint', 'with a wait that is none', checkpoint({ wait: 'yes' })],
  ['marker', 'without a name', marker({ name: 7 })],
  ['marker', 'of an unknown kind', marker({ kind: 'dance' })],
] as const

const PLACES = ['shared', 'separate'] as const

function define(bot: Bot): void {
  bot.flow('order', { on: 'order' }).ask('size', 'Size?').ask('colour', 'Colour?').persistent()
  bot.conversation('survey', async (c) => void (await c.ask('Mark?')), { on: 'survey' })
  bot.onMessage((ctx) => ctx.reply(`rest ${ctx.body}`))
}

async function start(bed: MemoryBed, durable: boolean, name = 'a'): Promise<Replica> {
  return bed.replica(name, {
    define,
    coordination: { handover: {} },
    config: durable ? { durability: true } : {},
  })
}

async function tell(bed: MemoryBed, a: Replica, body: string): Promise<void> {
  void a.receive({ id: body, body })
  await bed.pass(0.5)
}

describe.each(PLACES)('scenario 29: bad values, turns and data %s', (placement) => {
  describe.each([false, true])('durability %s', (durable) => {
    it.each(UNREADABLE)(
      'a %s that is %s is reported once, moved aside, and the chat goes on',
      async (what, _how, text) => {
        const bed = new MemoryBed(placement)
        const a = await start(bed, durable)
        await bed.plant(CHAT_KEY, what, text)
        await tell(bed, a, 'one')
        await tell(bed, a, 'two')
        expect(bed.said).toEqual(['rest one', 'rest two'])
        expect(a.errors.map(String)).toEqual([expect.stringContaining(`A stored ${what} of "${CHAT_KEY}"`)])
        expect(await bed.aside(CHAT_KEY, what)).toBe(text)
        await tell(bed, a, 'order')
        await tell(bed, a, 'M')
        expect(bed.said.slice(2)).toEqual(['Size?', 'Colour?'])
        await bed.close()
        expect(a.errors).toHaveLength(1)
      },
    )

    it.each(UNUSABLE)('a %s %s is reported once, removed, and the chat goes on', async (what, _how, text) => {
      const bed = new MemoryBed(placement)
      const a = await start(bed, durable)
      await bed.plant(CHAT_KEY, what, text)
      await tell(bed, a, 'one')
      await tell(bed, a, 'two')
      expect(bed.said).toEqual(['rest one', 'rest two'])
      expect(a.errors.map(String)).toEqual([expect.stringContaining(CHAT_KEY)])
      expect(await bed.stored(CHAT_KEY)).toBe('none')
      await bed.close()
    })

    it('H7: a kept answer that points to a record that is gone makes its step start over', async () => {
      const bed = new MemoryBed(placement)
      const a = await start(bed, durable)
      const fingerprint = await fingerprintOf(bed, a)
      const text = checkpoint({ fingerprint, answer: { recordId: 'gone' } })
      await bed.plant(CHAT_KEY, 'checkpoint', text)
      const b = await start(bed, durable, 'b')
      await tell(bed, b, 'L')
      expect(bed.said.slice(1)).toEqual(['Size?'])
      expect(b.errors).toEqual([])
      await bed.close()
    })
  })

  it.each([
    ['corrupt', '{"id":'],
    ['no message', '{"id":"one"}'],
    ['null', 'null'],
  ])(
    'D3: a journal record that is %s goes to the dead letters, and what came after it is handled',
    async (_how, text) => {
      const bed = new MemoryBed(placement)
      const a = await start(bed, true)
      a.freeze()
      await bed.store.arrive(CHAT_KEY, arrivalOf('one'))
      await bed.store.arrive(CHAT_KEY, arrivalOf('two'))
      await bed.plant(CHAT_KEY, 'record', text)
      a.thaw()
      await bed.pass(4)
      expect(bed.said).toEqual(['rest two'])
      expect(a.errors.map(String)).toEqual([expect.stringContaining(`A stored record of "${CHAT_KEY} one"`)])
      const letters = await a.bot.deadLetters.list()
      expect(letters).toMatchObject([{ key: CHAT_KEY, record: { id: 'one' } }])
      // Put back it is no better, and still stops nobody.
      await a.bot.deadLetters.retry(CHAT_KEY, 'one')
      await tell(bed, a, 'three')
      expect(bed.said).toEqual(['rest two', 'rest three'])
      expect(await a.bot.deadLetters.discard(CHAT_KEY, 'one')).toBe(true)
      expect(await bed.pending(CHAT_KEY)).toBe(0)
      await bed.close()
    },
  )

  it('D2: an outbox entry that is corrupt is reported with its key and left out', async () => {
    const bed = new MemoryBed(placement)
    const a = await start(bed, true)
    await bed.plant(CHAT_KEY, 'outbox', '{')
    await tell(bed, a, 'one')
    expect(bed.said).toEqual(['rest one'])
    expect(a.errors.map(String)).toEqual([expect.stringContaining(`"${CHAT_KEY} r:planted/-/0/0"`)])
    await tell(bed, a, 'two')
    expect(a.errors).toHaveLength(1)
    await bed.close()
  })
})

describe('H3: a state that is too large', () => {
  it('is reported once with its chat, goes on where it is, and elsewhere to the fallback', async () => {
    const bed = new MemoryBed('shared')
    const large = (bot: Bot) => {
      bot
        .flow<{ photo: string }>('order', { on: 'order' })
        .step('size', async (c) => {
          c.state.photo = 'x'.repeat(1_000_001)
          await c.ask('Size?')
        })
        .ask('photo', 'Photo?')
        .persistent()
    }
    const options = {
      define: large,
      coordination: { handover: { fallback: 'notify' as const, notifyMessage: 'Sorry' } },
    }
    const a = await bed.replica('a', options)
    const b = await bed.replica('b', options)
    await tell(bed, a, 'order')
    expect(await bed.stored(CHAT_KEY)).toBe('marker')
    await tell(bed, a, 'M')
    expect(bed.said).toEqual(['Size?', 'Photo?'])
    expect(a.errors.map(String)).toEqual([
      expect.stringContaining(`State of flow "order" in "${CHAT_KEY}" cannot be stored: c.state.photo`),
    ])
    await tell(bed, b, 'L')
    expect(bed.said.slice(2)).toEqual(['Sorry'])
    expect(b.handovers).toMatchObject([{ outcome: 'notified', reason: 'state' }])
    await bed.close()
  })
})

describe('scenario 29: bad values, one process alone', () => {
  it('a checkpoint that is corrupt is reported, and the chat goes on', async () => {
    const bed = new MemoryBed('shared')
    const { Bot } = await import('@botmesh/core')
    const { FakeProvider } = await import('@botmesh/core/testing')
    const provider = new FakeProvider({ platform: bed.platform })
    const bot = new Bot({ provider, store: bed.store, clock: bed.clock })
    const errors: unknown[] = []
    bot.on('error', ({ error }) => errors.push(error))
    define(bot)
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

async function fingerprintOf(bed: MemoryBed, a: Replica): Promise<string | undefined> {
  await tell(bed, a, 'order')
  return (await bed.store.getCheckpoint(CHAT_KEY))?.fingerprint
}

function arrivalOf(id: string) {
  const message = {
    id,
    chatId: '100',
    from: '100',
    type: 'text' as const,
    body: id,
    isGroup: false,
    timestamp: 1,
  }
  return { messageId: id, timestamp: 1, message }
}
