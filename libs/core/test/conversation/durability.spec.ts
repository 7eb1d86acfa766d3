/** What the engine leaves for journal and outbox, failures, and an orderly stop (H4, H7, H8, D2, D3, K1, K2). */
import { describe, expect, it } from '@jest/globals'
import { LeaseLostError } from '../../src/contracts/errors.js'
import type { ReplicaOptions } from './mini-runtime.js'
import { gate, setUp, slowFlow } from './scenes.js'
import { KEY } from './world.js'

describe('H7, H8: with durability', () => {
  const DURABLE: ReplicaOptions = { durable: true }

  /** `M` is the kept answer of a step that was cut on `a` and on `b`, and `Calle 1` waits behind it. */
  async function cutTwice() {
    const works = [gate(), gate(), gate()] as const
    let at = 0
    const { world, a, b } = setUp((registry) => slowFlow(registry, () => works[at]!, []), DURABLE)
    await a.say('order')
    await a.say('M', { cut: works[0].reached })
    at = 1
    const { span } = await b.say('Calle 1', { cut: works[1].reached })
    at = 2
    return { world, a, b, span, work: works[2], goOn: () => works[2].open() }
  }

  it('H7: the checkpoint points to the record, and the repeated sends bear the same names', async () => {
    const gates = { a: gate(), b: gate() }
    const { world, a, b } = setUp(
      (registry, name) => slowFlow(registry, () => gates[name as 'a' | 'b'], []),
      DURABLE,
    )
    gates.b.open()
    await a.say('order')
    await a.say('M', { cut: gates.a.reached })
    expect(world.checkpoint?.answer).toEqual({ recordId: 'm2' })
    expect(world.acked).toEqual(['m1', 'm2'])
    await b.say('Calle 1')
    const refs = world.sent.filter((one) => one.text === 'working on M').map((one) => one.ref)
    expect(refs).toEqual([
      { step: 'size', visit: 1, ordinal: 1 },
      { step: 'size', visit: 1, ordinal: 1, recordId: 'm2' },
    ])
    expect(world.sent.find((one) => one.text === 'Address?')?.ref).toEqual({
      step: 'address',
      visit: 2,
      ordinal: 0,
      recordId: 'm2',
    })
    expect(world.acked).toEqual(['m1', 'm2', 'm3'])
  })

  it('H8: an answer to a later question that no checkpoint holds is not acknowledged when its step is cut', async () => {
    const work = gate()
    const { world, a } = setUp(
      (registry) =>
        void registry
          .flow('f', { on: 'f' })
          .step('s', async (c) => {
            await c.ask('A?')
            await c.ask('B?')
            work.reach()
            await work.opened
          })
          .persistent(),
      DURABLE,
    )
    await a.say('f')
    await a.say('1')
    const { span } = await a.say('2', { cut: work.reached })
    expect(span.ackWithheld).toBe(true)
    expect(world.acked).toEqual(['m1', 'm2'])
    // Repeated, it starts the step over and is consumed by that.
    await a.say(world.records.get('m3')!)
    expect(world.said).toEqual(['A?', 'B?', 'A?'])
    expect(world.acked).toEqual(['m1', 'm2', 'm3'])
  })

  it('H7, H8: messages that wait behind a kept answer are kept with it, however often its step is cut', async () => {
    const { world, a, span, goOn } = await cutTwice()
    expect(span.ackWithheld).toBe(false)
    // Itself, since a store keeps the content of the acknowledged record that the answer points to, and of no other.
    expect(world.checkpoint?.held).toEqual([
      { recordId: 'm3', message: expect.objectContaining({ id: 'm3', body: 'Calle 1' }) },
    ])
    goOn()
    await a.say('too much')
    expect(world.said.filter((text) => text.startsWith('done'))).toEqual(['done M'])
    expect([world.checkpoint, world.acked]).toEqual([null, ['m1', 'm2', 'm3', 'm4']])
  })

  it('H7: what nothing has asked for when the flow ends is handled as a message of its own, in order', async () => {
    const { world, a, b, goOn } = await cutTwice()
    goOn()
    const { span } = await a.say('hello')
    expect([world.checkpoint, a.routed, b.routed, span.ackWithheld]).toEqual([null, ['hello'], [], false])
    expect(world.acked).toEqual(['m1', 'm2', 'm3', 'm4'])
  })

  it('H7: one of them may enter a flow, and the next one is its answer', async () => {
    const { world, a, b, work, goOn } = await cutTwice()
    await a.say('order', { cut: work.reached })
    expect(world.checkpoint?.held).toHaveLength(2)
    goOn()
    await b.say('L')
    expect(world.said.slice(-4)).toEqual(['Size?', 'working on L', 'done L', 'Address?'])
    expect([world.checkpoint?.step, a.routed, b.routed]).toEqual(['address', [], []])
  })

  it.each(['first', 'second'])(
    'D1, H8: a flow that its replica stops in its %s step before it has asked goes on under the record that entered it',
    async (cutIn) => {
      const work = gate()
      const at = async (step: string) => {
        if (step !== cutIn) return
        work.reach()
        await work.opened
      }
      const { world, a, b } = setUp(
        (registry, name) =>
          void registry
            .flow('f', { on: 'f' })
            .step('first', async (c) => {
              if (name === 'a') await at('first')
              await c.say(`begun by ${c.message.body}`)
            })
            .step('second', async (c) => {
              if (name === 'a') await at('second')
              c.state.answer = await c.ask('A?')
            })
            .ask('b', 'B?')
            .persistent(),
        DURABLE,
      )
      const { span } = await a.say('f', { cut: work.reached, reason: 'stopped' })
      expect([span.ackWithheld, world.acked]).toEqual([true, []])
      await b.say(span.message!)
      expect(world.said).toEqual(['begun by f', 'A?'])
      await b.say('1')
      expect(world.checkpoint).toMatchObject({ step: 'b', state: { answer: '1' } })
      expect(world.acked).toEqual(['m1', 'm2'])
    },
  )

  describe('H7: one of those that are left over enters a flow', () => {
    /** The last two of them are left when the first flow ends: the entry and what woke the chat. */
    async function leftOver(second: (c: { message: { body: string }; ctx: unknown }) => Promise<unknown>) {
      const work = gate()
      let cut = true
      const scene = setUp((registry) => {
        registry
          .flow('first', { on: 'first' })
          .step('s', async (c) => {
            await c.ask('A?')
            work.reach()
            if (cut) await work.opened
          })
          .persistent()
        registry
          .flow('second', { on: /^second/ })
          .step('begin', async (c) => {
            await c.say(
              `begun by ${c.message.body}, ${(c.ctx as { message: { body: string } }).message.body}`,
            )
            await second(c)
          })
          .ask('b', 'B?')
          .ask('d', 'D?')
          .persistent()
      }, DURABLE)
      await scene.a.say('first')
      await scene.a.say('answer', { cut: work.reached })
      await scene.b.say('second', { cut: work.reached })
      cut = false
      return scene
    }

    it('c.message and c.ctx are of it, not of the message that woke the chat; its sends bear its name', async () => {
      const { world, a } = await leftOver(async () => undefined)
      await a.say('woke')
      expect(world.said.slice(-3)).toEqual(['begun by second, second', 'B?', 'D?'])
      expect(world.sent.at(-3)?.ref).toMatchObject({ step: 'begin', recordId: 'm3' })
      expect(world.checkpoint).toMatchObject({ step: 'd', state: { b: 'woke' } })
      expect(world.acked).toEqual(['m1', 'm2', 'm3', 'm4'])
    })

    it('what waits behind it is in the store as soon as the entry is, and is its answer after a death', async () => {
      const reached = gate()
      let dies = true
      const { world, a, b } = await leftOver(async () => {
        reached.reach()
        if (dies) await reached.opened
      })
      const entry = () => world.writes.find((one) => one.change.checkpoint?.name === 'second')
      const { span } = await a.say('woke', { cut: reached.reached, reason: 'frozen' })
      expect(entry()?.change.checkpoint?.held).toMatchObject([{ recordId: 'm4', message: { body: 'woke' } }])
      dies = false
      await b.say(span.message!)
      expect(world.checkpoint).toMatchObject({ step: 'd', state: { b: 'woke' } })
    })
  })

  it('D3: a failed attempt finds the flow where it was; after the last one it is ended in the store too', async () => {
    let fail = true
    const { world, a } = setUp(
      (registry) =>
        void registry
          .flow('f', { on: 'f' })
          .step('s', async (c) => {
            await c.ask('A?')
            if (fail) throw new Error('down')
          })
          .ask('b', 'B?')
          .persistent(),
      DURABLE,
    )
    await a.say('f')
    const waiting = world.checkpoint
    await a.say(world.message('1'))
    expect([world.checkpoint, a.engine.size, a.reported]).toEqual([waiting, 0, [new Error('down')]])
    fail = false
    await a.say(world.records.get('m2')!)
    expect(world.said).toEqual(['A?', 'B?'])
    fail = true
    await a.say('back')
    await a.say('f')
    await a.say('x', { finalAttempt: true })
    expect([world.checkpoint, a.engine.size]).toEqual([null, 0])
  })

  it('K2: a refused write ends the conversation as a lost turn', async () => {
    const { world, a } = setUp(
      (registry) =>
        void registry
          .flow('f', { on: 'f' })
          .ask('a', 'A?')
          .do('work', (c) => c.say('never'))
          .persistent(),
    )
    await a.say('f')
    a.beforeWrite = () => Promise.reject(new LeaseLostError(KEY, 'superseded'))
    await a.say('1')
    expect([a.engine.size, a.reported, world.said]).toEqual([0, [], ['A?']])
    expect(world.checkpoint).toMatchObject({ step: 'a', wait: { question: 0 } })
    a.beforeWrite = null
  })

  it('K1: entering fails with the write that should have stored it', async () => {
    const { world, a } = setUp((registry) => void registry.flow('f', { on: 'f' }).ask('a', 'A?').persistent())
    a.beforeWrite = () => Promise.reject(new Error('store down'))
    await expect(a.say('f')).rejects.toThrow('store down')
    expect([a.engine.size, world.said]).toEqual([0, []])
  })
})

describe('D2: names of sends', () => {
  it('D2: a step that is repeated from its beginning names its sends after the record it began under', async () => {
    const works = [gate(), gate()]
    let next = 0
    const { world, a, b } = setUp(
      (registry) =>
        void registry
          .flow('f', { on: 'f' })
          .ask('a', 'A?')
          .do('work', async (c) => {
            await c.say('working')
            works[next]!.reach()
            await works[next]!.opened
            await c.ask('B?')
          })
          .persistent(),
      { durable: true },
    )
    await a.say('f')
    await a.say('1', { cut: works[0]!.reached })
    expect(world.checkpoint).toMatchObject({ step: 'work', recordId: 'm2' })
    next = 1
    works[1]!.open()
    await b.say('hello?')
    expect(world.sent.filter((one) => one.text === 'working').map((one) => one.ref)).toEqual([
      { step: 'work', visit: 2, ordinal: 0 },
      { step: 'work', visit: 2, ordinal: 0, recordId: 'm2' },
    ])
    expect(world.checkpoint).not.toHaveProperty('recordId')
  })
})

describe('stopping', () => {
  it('H4: copies and timers go, the checkpoint stays, and another replica goes on', async () => {
    const { world, a, b } = setUp(
      (registry) =>
        void registry.flow('f', { on: 'f' }).ask('a', 'A?', { timeout: '5m' }).ask('b', 'B?').persistent(),
    )
    await a.say('f')
    a.engine.stop(new LeaseLostError(KEY, 'stopped'))
    expect([a.engine.size, world.clock.timers]).toEqual([0, 0])
    await b.say('1')
    expect(world.said).toEqual(['A?', 'B?'])
  })
})
