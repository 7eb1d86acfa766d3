/** Steps that are cut, lose their turn or fail: what is kept, and what their code may still do (T4, K4, H7, H8, H10). */
import { describe, expect, it } from '@jest/globals'
import { LeaseLostError } from '../../src/contracts/errors.js'
import type { FlowRegistry } from '../../src/conversation/index.js'
import { gate, setUp, slowFlow } from './scenes.js'

describe('T4, K4: a step that is stopped', () => {
  it('T4: its signal aborts, everything it does later rejects and nothing of it is seen', async () => {
    const gates = { a: gate(), b: gate() }
    const after: unknown[] = []
    const { world, a, b } = setUp((registry, name) =>
      slowFlow(registry, () => gates[name as 'a' | 'b'], name === 'a' ? after : []),
    )
    gates.b.open()
    await a.say('order')
    await a.say('M', { cut: gates.a.reached })
    expect(a.engine.size).toBe(0)
    // H7: the answer was kept, so b does not ask again, and keeps its own message for the next question.
    expect(world.checkpoint).toMatchObject({ step: 'size', answer: { message: { body: 'M' } } })
    expect(JSON.stringify(world.checkpoint)).not.toContain('secret')
    await b.say('Calle 1')
    const writes = world.writes.length
    gates.a.open()
    await world.clock.settle()
    await world.clock.advance(100)
    expect(after).toEqual([expect.any(LeaseLostError), true])
    expect(world.writes).toHaveLength(writes)
    expect(world.said).toEqual(['Size?', 'working on M', 'working on M', 'done M', 'Address?'])
    expect(b.events).toEqual([{ name: 'order', outcome: 'resumed' }])
    expect(world.checkpoint).toBeNull()
  })

  it('K4: also when the same replica has taken the chat again', async () => {
    const first = gate()
    const second = gate()
    let current = first
    const after: unknown[] = []
    const { world, a } = setUp((registry) => slowFlow(registry, () => current, after))
    await a.say('order')
    await a.say('M', { cut: first.reached })
    current = second
    second.open()
    const going = a.say('Calle 1')
    first.open()
    await going
    expect(after.filter((one) => one instanceof LeaseLostError)).toHaveLength(1)
    expect(world.said.filter((text) => text === 'done M')).toHaveLength(1)
    expect(world.checkpoint).toBeNull()
    expect(a.engine.size).toBe(0)
  })

  it('H7: an answer given to a .do step is stored before the step goes on, so a lost turn keeps it too', async () => {
    const gates = { a: gate(), b: gate() }
    const { world, a, b } = setUp((registry, name) =>
      slowFlow(registry, () => gates[name as 'a' | 'b'], [], 'do'),
    )
    gates.b.open()
    await a.say('order')
    await a.say('M', { cut: gates.a.reached, reason: 'frozen' })
    expect(world.writes.at(-1)).toMatchObject({
      how: 'write',
      change: { checkpoint: { answer: { message: { body: 'M' } } } },
    })
    await b.say('Calle 1')
    expect(world.said).toEqual(['Size?', 'working on M', 'working on M', 'done M', 'Address?'])
  })

  it('H7: any other step has it stored 50 ms after at the latest, and while a validator works', async () => {
    const slow = gate()
    const { world, a } = setUp(
      (registry) =>
        void registry
          .flow('f', { on: 'f' })
          .step(
            's',
            async (c) =>
              void (await c.ask('A?', { validate: () => (slow.reach(), slow.opened.then(() => true)) })),
          )
          .persistent(),
    )
    await a.say('f')
    const going = a.say('1')
    await slow.reached
    await world.clock.settle()
    expect(world.checkpoint?.answer).toMatchObject({ message: { body: '1' } })
    slow.open()
    await going
    expect(world.checkpoint).toBeNull()
  })

  it('H7: what hooks made of the answer travels with it', async () => {
    const gates = { a: gate(), b: gate() }
    const { world, a, b } = setUp((registry, name) => slowFlow(registry, () => gates[name as 'a' | 'b'], []))
    gates.b.open()
    await a.say('order')
    await a.say(world.message(''), { cut: gates.a.reached, hooks: { body: 'spoken', lang: 'es' } })
    await b.say('Calle 1')
    expect(world.said).toContain('done spoken')
  })

  it('H7, H11: an answer larger than maxAnswerBytes is asked again, the message that woke it is consumed', async () => {
    const gates = { a: gate(), b: gate() }
    const define = (registry: FlowRegistry, name: string) =>
      slowFlow(registry, () => gates[name as 'a' | 'b'], [])
    const { world, a, b } = setUp(define, {}, { maxAnswerBytes: 1_000 })
    gates.b.open()
    await a.say('order')
    await a.say('x'.repeat(2_000), { cut: gates.a.reached })
    expect(world.checkpoint).toMatchObject({ step: 'size' })
    expect(world.checkpoint).not.toHaveProperty('answer')
    expect(world.checkpoint).not.toHaveProperty('wait')
    await b.say('M')
    expect(world.said.filter((text) => text === 'Size?')).toHaveLength(2)
    await b.say('L')
    expect(world.said).toContain('done L')
  })

  it('H10: a conversation suspended before its first wait leaves no marker', async () => {
    const work = gate()
    const { world, a } = setUp(
      (registry) =>
        registry.conversation(
          'c',
          async (c) => {
            work.reach()
            await work.opened
            await c.ask('?')
          },
          { on: 'c' },
        ),
      {},
      { markers: true, fallback: 'notify' },
    )
    await a.say('c', { cut: work.reached })
    work.open()
    await world.clock.settle()
    expect([world.marker, world.said, world.writes]).toEqual([null, [], []])
  })

  it('T4: c.sleep ends with the turn, and code that never gives up does not block the process', async () => {
    const asleep = gate()
    const ends: unknown[] = []
    const { world, a } = setUp(
      (registry) =>
        void registry.flow('f', { on: 'f' }).step('s', async (c) => {
          asleep.reach()
          await c.sleep('10m').catch((error: unknown) => ends.push(error))
          for (let tries = 0; ; tries++) {
            try {
              await c.ask('again?')
              return
            } catch {
              ends[1] = tries
            }
          }
        }),
    )
    await a.say('f', { cut: asleep.reached })
    await world.clock.settle()
    expect(ends[0]).toBeInstanceOf(LeaseLostError)
    expect(ends[1]).toBeLessThan(100)
    expect(world.said).toEqual([])
  })

  it('K4: ctx.reply in a stopped step has no effect either, and counts among its sends before that', async () => {
    const work = gate()
    const refused: unknown[] = []
    const { world, a, b } = setUp(
      (registry, name) =>
        void registry
          .flow('f', { on: 'f' })
          .step('s', async (c) => {
            const ctx = c.ctx as unknown as { reply(text: string): Promise<unknown> }
            await ctx.reply('Hello')
            await c.ask('A?')
            if (name === 'b') return
            work.reach()
            await work.opened
            await ctx.reply('late').catch((error: unknown) => refused.push(error))
          })
          .persistent(),
    )
    await a.say('f')
    expect(world.checkpoint?.wait).toEqual({ question: 0, sends: 2 })
    await a.say('1', { cut: work.reached })
    work.open()
    await world.clock.settle()
    expect(refused).toEqual([expect.any(LeaseLostError)])
    await b.say('2')
    expect(world.said).toEqual(['Hello', 'A?'])
  })
})
