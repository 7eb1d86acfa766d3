/** Steps that are cut, lose their turn or fail: what is kept, and what their code may still do (T4, K4, H7, H8, H10). */
import { describe, expect, it } from '@jest/globals'
import { LeaseLostError } from '../../src/contracts/errors.js'
import type { FlowRegistry, StepContext } from '../../src/conversation/index.js'
import type { ConversationOptions } from '../../src/conversation/port.js'
import { Replica, type ReplicaOptions } from './mini-runtime.js'
import { KEY, World } from './world.js'

interface Gate {
  opened: Promise<void>
  open(): void
  reached: Promise<void>
  reach(): void
}

function gate(): Gate {
  let open = (): void => undefined
  let reach = (): void => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  const reached = new Promise<void>((resolve) => (reach = resolve))
  return { opened, open, reached, reach }
}

/** A flow whose work after the first answer lasts until the gate opens; `after` is what its code saw then. */
function slowFlow(registry: FlowRegistry, work: () => Gate, after: unknown[], kind: 'step' | 'do' = 'step') {
  const run = async (c: StepContext): Promise<void> => {
    const answer = await c.ask('Size?')
    await c.say(`working on ${answer}`)
    work().reach()
    await work().opened
    await c.say(`done ${answer}`).catch((error: unknown) => after.push(error))
    c.state['size'] = answer
    after.push(c.signal.aborted)
  }
  const flow = registry.flow('order', { on: 'order' })
  void (kind === 'do' ? flow.do('size', run) : flow.step('size', run)).ask('address', 'Address?').persistent()
}

function setUp(
  define: (registry: FlowRegistry, replica: string) => void,
  more: ReplicaOptions = {},
  options: Partial<ConversationOptions> = {},
) {
  const world = new World()
  const make = (name: string) =>
    new Replica(world, name, (registry) => define(registry, name), { ...more, options })
  return { world, a: make('a'), b: make('b') }
}

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

describe('H7, H8: with durability', () => {
  const DURABLE: ReplicaOptions = { durable: true }

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
    const works = [gate(), gate(), gate()]
    let next = 0
    const { world, a, b } = setUp((registry) => slowFlow(registry, () => works[next]!, []), DURABLE)
    await a.say('order')
    await a.say('M', { cut: works[0]!.reached })
    next = 1
    const { span } = await b.say('Calle 1', { cut: works[1]!.reached })
    expect([span.ackWithheld, world.checkpoint?.held]).toEqual([false, [{ recordId: 'm3' }]])
    next = 2
    works[2]!.open()
    await a.say('too much')
    expect(world.said.filter((text) => text.startsWith('done'))).toEqual(['done M'])
    expect([world.checkpoint, world.acked]).toEqual([null, ['m1', 'm2', 'm3', 'm4']])
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
