/**
 * Values in the store that no version of this library would have written so: each is reported once, with its key, and
 * moved out of the way; the chat goes on, and nothing fails again and again (scenario 29, D3). The same on every bed that
 * can plant such values.
 */
import { expect } from '@jest/globals'
import type { Arrival, Bot, Store } from '@botmesh/core'
import { CHAT_ID, CHAT_KEY, type HandoverBed, type Replica } from './bed.js'

export type Plantable = 'checkpoint' | 'marker' | 'record' | 'outbox'

/** Where values can be put in the place of those that the library writes. */
export interface BadInputBed extends HandoverBed {
  /** Looks at the data beside the replicas. */
  readonly store: Store
  /** Puts a text in the place of a stored value, as a broken writer would. Of `record`: the chat's oldest. */
  plant(chatKey: string, what: Plantable, text: string): Promise<void>
  /** Where the content of a record is kept apart from its place in the queue: removes the content. */
  lose?(chatKey: string, id: string): Promise<void>
  /** What was moved aside of the chat, as it was. */
  aside(chatKey: string, what: 'checkpoint' | 'marker'): Promise<string | undefined>
}

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
  ['checkpoint', 'with an answer that is none', checkpoint({ answer: 'M' })],
  ['checkpoint', 'with held messages that are none', checkpoint({ answer: { recordId: 'x' }, held: 5 })],
  ['marker', 'without a name', marker({ name: 7 })],
  ['marker', 'of an unknown kind', marker({ kind: 'dance' })],
] as const

const RECORDS = [
  ['corrupt', '{"id":'],
  ['no message', '{"id":"one"}'],
  ['null', 'null'],
] as const

export interface BadInputCase {
  name: string
  play: (bed: BadInputBed) => Promise<void>
}

function define(bot: Bot): void {
  bot.flow('order', { on: 'order' }).ask('size', 'Size?').ask('colour', 'Colour?').persistent()
  bot.conversation('survey', async (c) => void (await c.ask('Mark?')), { on: 'survey' })
  bot.onMessage((ctx) => ctx.reply(`rest ${ctx.body}`))
}

async function start(bed: BadInputBed, durable: boolean, name = 'a'): Promise<Replica> {
  return bed.replica(name, {
    define,
    coordination: { handover: {} },
    config: durable ? { durability: true } : {},
  })
}

/** The user writes, and the bot has done what there was to do. */
async function tell(bed: HandoverBed, a: Replica, body: string): Promise<void> {
  void a.receive({ id: body, body })
  await bed.until(() => a.handled.some(({ message }) => message.id === body), 4)
  await bed.pass(0.02)
}

/** Of beds that can lose a record's content. */
export const LOST_RECORD: BadInputCase = {
  name: 'D3: a journal record without content goes to the dead letters, and what came after it is handled',
  play: (bed) => badRecord(bed, null),
}

/** All cases for values of one chat. */
export function badInputCases(): BadInputCase[] {
  const both = [false, true].flatMap((durable) => [
    ...UNREADABLE.map(([what, how, text]) => ({
      name: `a ${what} that is ${how} is reported once, moved aside, and the chat goes on, durability ${durable}`,
      play: (bed: BadInputBed) => unreadable(bed, durable, what, text),
    })),
    ...UNUSABLE.map(([what, how, text]) => ({
      name: `a ${what} ${how} is reported once, removed, and the chat goes on, durability ${durable}`,
      play: (bed: BadInputBed) => unusable(bed, durable, what, text),
    })),
    {
      name: `H7: a kept answer that points to a record that is gone makes its step start over, durability ${durable}`,
      play: (bed: BadInputBed) => lostAnswer(bed, durable),
    },
    {
      name: `H3: a state that is nested too deeply goes on where it is, durability ${durable}`,
      play: (bed: BadInputBed) => tooDeep(bed, durable),
    },
    {
      name: `H2: a checkpoint of a flow that no longer exists goes to the fallback, durability ${durable}`,
      play: (bed: BadInputBed) => unknownFlow(bed, durable),
    },
  ])
  const records = RECORDS.map(([how, text]) => ({
    name: `D3: a journal record that is ${how} goes to the dead letters, and what came after it is handled`,
    play: (bed: BadInputBed) => badRecord(bed, text),
  }))
  const more = [
    { name: 'D2: an outbox entry that is corrupt is reported with its key and left out', play: badEntry },
    {
      name: 'H3: a state that is too large is reported once with its chat, and goes on where it is',
      play: tooLarge,
    },
  ]
  return [...both, ...records, ...more]
}

async function unreadable(bed: BadInputBed, durable: boolean, what: 'checkpoint' | 'marker', text: string) {
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
  expect(a.errors).toHaveLength(1)
}

async function unusable(bed: BadInputBed, durable: boolean, what: 'checkpoint' | 'marker', text: string) {
  const a = await start(bed, durable)
  await bed.plant(CHAT_KEY, what, text)
  await tell(bed, a, 'one')
  await tell(bed, a, 'two')
  expect(bed.said).toEqual(['rest one', 'rest two'])
  expect(a.errors.map(String)).toEqual([expect.stringContaining(CHAT_KEY)])
  expect(await bed.stored(CHAT_KEY)).toBe('none')
}

async function lostAnswer(bed: BadInputBed, durable: boolean) {
  const a = await start(bed, durable)
  await tell(bed, a, 'order')
  const fingerprint = (await bed.store.getCheckpoint(CHAT_KEY))?.fingerprint
  await bed.plant(CHAT_KEY, 'checkpoint', checkpoint({ fingerprint, answer: { recordId: 'gone' } }))
  const b = await start(bed, durable, 'b')
  await tell(bed, b, 'L')
  expect(bed.said.slice(1)).toEqual(['Size?'])
  expect(b.errors).toEqual([])
}

async function unknownFlow(bed: BadInputBed, durable: boolean) {
  const a = await start(bed, durable)
  await bed.plant(CHAT_KEY, 'checkpoint', checkpoint({ name: 'gone' }))
  await tell(bed, a, 'one')
  await tell(bed, a, 'two')
  expect(bed.said).toEqual(['rest one', 'rest two'])
  expect(a.handovers).toMatchObject([{ key: CHAT_KEY, name: 'gone', outcome: 'dropped', reason: 'changed' }])
  expect(a.errors).toEqual([])
  expect(await bed.stored(CHAT_KEY)).toBe('none')
}

async function tooDeep(bed: BadInputBed, durable: boolean) {
  const a = await start(bed, durable)
  const deep = `{"a":${'['.repeat(5000)}${']'.repeat(5000)}}`
  await bed.plant(
    CHAT_KEY,
    'checkpoint',
    checkpoint({ visit: 1, state: {} }).replace('"state":{}', `"state":${deep}`),
  )
  await tell(bed, a, 'M')
  await tell(bed, a, 'red')
  await tell(bed, a, 'one')
  expect(bed.said).toEqual(['Colour?', 'rest one'])
  expect(a.errors.map(String)).toEqual([expect.stringContaining(`State of flow "order" in "${CHAT_KEY}"`)])
}

async function badRecord(bed: BadInputBed, text: string | null) {
  const a = await start(bed, true)
  a.freeze()
  await bed.store.arrive?.(CHAT_KEY, arrivalOf('one'))
  await bed.store.arrive?.(CHAT_KEY, arrivalOf('two'))
  if (text === null) await bed.lose?.(CHAT_KEY, 'one')
  else await bed.plant(CHAT_KEY, 'record', text)
  a.thaw()
  await bed.until(() => bed.said.length > 0, 6)
  await bed.pass(0.1)
  expect(bed.said).toEqual(['rest two'])
  expect(a.errors.map(String)).toEqual([expect.stringContaining(`A stored record of "${CHAT_KEY} one"`)])
  const letters = await a.bot.deadLetters.list()
  expect(letters).toMatchObject([{ key: CHAT_KEY, record: { id: 'one' }, damaged: expect.any(String) }])
  // Put back it is no better, and still stops nobody.
  await a.bot.deadLetters.retry(CHAT_KEY, 'one')
  await tell(bed, a, 'three')
  expect(bed.said).toEqual(['rest two', 'rest three'])
  expect(await a.bot.deadLetters.discard(CHAT_KEY, 'one')).toBe(true)
  expect(await bed.pending(CHAT_KEY)).toBe(0)
}

async function badEntry(bed: BadInputBed) {
  const a = await start(bed, true)
  await bed.plant(CHAT_KEY, 'outbox', '{')
  await tell(bed, a, 'one')
  expect(bed.said).toEqual(['rest one'])
  expect(a.errors.map(String)).toEqual([expect.stringContaining(`"${CHAT_KEY} r:planted/-/0/0"`)])
  await tell(bed, a, 'two')
  expect(a.errors).toHaveLength(1)
}

async function tooLarge(bed: BadInputBed) {
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
}

function arrivalOf(id: string): Arrival {
  const message = {
    id,
    chatId: CHAT_ID,
    from: CHAT_ID,
    type: 'text' as const,
    body: id,
    isGroup: false,
    timestamp: 1,
  }
  return { messageId: id, timestamp: 1, message }
}
