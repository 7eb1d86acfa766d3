/**
 * A step with a kept answer that is cut short again, with durability: what came meanwhile waits behind it and is an
 * answer in the end, wherever the data stands (H7, H8, D1).
 */
import { randomUUID } from 'node:crypto'
import { describe, expect, it } from '@jest/globals'
import type { Bot } from '@botmesh/core'
import { sharedRedisUrl } from '../../support/index.js'
import { CHAT_KEY, type HandoverBed, type Replica } from './bed.js'
import { MemoryBed } from './memory-bed.js'
import { MongoBed } from './mongo-bed.js'
import { mongoPlace } from './mongo-places.js'
import { RedisBed } from './redis-bed.js'
import { SqlBed } from './sql-bed.js'
import { databases, placeIn } from './sql-places.js'

const MAX_ANSWER_BYTES = 300
const SHORT = 'Calle 1'
/** Too large for a checkpoint: its record stays unacknowledged (and a step that is always too long fails its attempts). */
const LONG = `Calle ${'1'.repeat(MAX_ANSWER_BYTES)}`
const prefix = (): string => `k${randomUUID().slice(0, 8)}`

const beds: { place: string; make: () => Promise<HandoverBed> }[] = [
  { place: 'the hub', make: async () => new MemoryBed('shared') },
  { place: 'the hub, data apart', make: async () => new MemoryBed('separate') },
  { place: 'Redis', make: async () => new RedisBed(await sharedRedisUrl(), prefix()) },
  { place: 'MongoDB', make: async () => new MongoBed(await sharedRedisUrl(), await mongoPlace(prefix())) },
  ...databases.map((database) => ({
    place: database.name,
    make: async () => new SqlBed(await sharedRedisUrl(), (await placeIn(database))(prefix())),
  })),
]

type How = 'stopped' | 'cut'

/** Replicas of a flow whose first answer takes for ever, but on the last of them. */
class Scene {
  reached = 0

  /** @param how the step is cut short: its replica stops, or its time is up (`settleMs`). */
  constructor(
    readonly bed: HandoverBed,
    private readonly how: How,
  ) {}

  replica(name: string, last = false): Promise<Replica> {
    return this.bed.replica(name, {
      define: (bot) => this.define(bot, last),
      coordination: {
        settleMs: this.how === 'cut' && !last ? 50 : '1m',
        handover: { maxAnswerBytes: MAX_ANSWER_BYTES },
      },
      config: { durability: true, drainMs: 50 },
    })
  }

  /** Hands in a message that is worked on until it is cut short. */
  async cutShort(on: Replica, id: string, body: string): Promise<void> {
    const before = this.reached
    void on.receive({ id, body })
    await this.bed.until(() => this.reached > before, 5)
    if (this.reached === before) throw new Error('The step was not reached.')
    let cut = false
    on.bot.on('coordination:lease-lost', () => (cut = true))
    if (this.how === 'stopped') await on.stop()
    else await this.bed.until(() => cut, 5)
  }

  private define(bot: Bot, last: boolean): void {
    const never = new Promise<void>(() => undefined)
    bot
      .flow('order', { on: 'order' })
      .step('size', async (c) => {
        c.state['size'] = await c.ask('Size?')
        await c.say('Noted')
        this.reached += 1
        if (!last) await never
      })
      .ask('address', 'Address?')
      .ask('name', 'Name?')
      .step('end', (c) => c.say([c.state['size'], c.state['address'], c.state['name']].join(', ')))
      .persistent()
    bot.onMessage((ctx) => ctx.reply(`Heard ${ctx.body} of ${ctx.from}`).then(() => undefined))
  }
}

describe.each(beds)('H7, H8, D1: on $place, a step that is cut short twice', ({ make }) => {
  it.each([
    { how: 'stopped', what: 'small', address: SHORT },
    { how: 'stopped', what: 'large', address: LONG },
    { how: 'cut', what: 'small', address: SHORT },
  ] as const)(
    'keeps the $what message that came meanwhile for the next question ($how)',
    async ({ how, address }) => {
      const scene = new Scene(await make(), how)
      const { bed } = scene
      try {
        const a = await scene.replica('a')
        await a.receive({ id: '1', body: 'order' })
        await bed.until(() => bed.said.includes('Size?'), 5)
        await scene.cutShort(a, '2', 'M')
        await scene.cutShort(await scene.replica('b'), '3', address)
        await scene.cutShort(await scene.replica('c'), '4', 'Ana')
        const d = await scene.replica('d', true)
        void d.receive({ id: '5', body: 'too much' })
        await bed.until(() => bed.said.some((text) => text.startsWith('M, ')), 10)
        expect(bed.said.filter((text) => text.includes(', '))).toEqual([`M, ${address}, Ana`])
        expect(bed.said.filter((text) => text === 'Noted')).toHaveLength(1)
        await bed.until(() => d.handled.some(({ message }) => message.id === '5'), 5)
        await d.stop()
        // Nothing has asked for it.
        expect(bed.said.filter((text) => text.startsWith('Heard'))).toEqual(['Heard too much of 100'])
        expect([await bed.pending(CHAT_KEY), await bed.stored(CHAT_KEY), d.errors]).toEqual([0, 'none', []])
      } finally {
        await bed.close()
      }
    },
    60_000,
  )
})
