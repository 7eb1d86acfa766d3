/** What another replica makes of a conversation, and what is written when (K1, K3, H1–H7, H9–H11, T5). */
import { describe, expect, it } from '@jest/globals'
import type { FlowCheckpoint } from '../../src/contracts/checkpoint-store.js'
import type { ConversationOptions } from '../../src/conversation/port.js'
import { Replica } from './mini-runtime.js'
import { pair, persistent, type Define } from './scenes.js'
import { World } from './world.js'

const FORWARD: Partial<ConversationOptions> = { forward: true, markers: true, fallback: 'notify' }

const plain: Define = (registry) =>
  void registry
    .flow('f', { on: 'f' })
    .ask('a', 'A?')
    .ask('b', 'B?')
    .step('end', (c) => c.say(JSON.stringify(c.state)))

const survey: Define = (registry) =>
  registry.conversation('survey', async (c) => c.say(`${await c.ask('One?')} ${await c.ask('Two?')}`), {
    on: 'survey',
  })

describe('K1: a persistent flow under coordination', () => {
  it('K1: is stored on entry, before its first step runs, and its wait with the commit', async () => {
    const { world, a } = pair(persistent)
    let seen: FlowCheckpoint | null = null
    a.beforeSend = async () => void (seen ??= world.checkpoint)
    await a.say('order')
    expect(seen).toMatchObject({ name: 'order', step: 'size', visit: 1, state: {} })
    expect(seen).not.toHaveProperty('wait')
    expect(world.writes.map((one) => one.how)).toEqual(['write', 'commit'])
    expect(world.checkpoint).toMatchObject({ step: 'size', wait: { question: 0, sends: 2 } })
    expect(world.checkpoint).not.toHaveProperty('ephemeral')
  })

  it('K1: goes on elsewhere at its first question, without asking or saying again', async () => {
    const { world, a, b } = pair(persistent)
    await a.say('order')
    await b.say('M')
    await a.say('Calle 1')
    expect(world.said).toEqual(['Hello', 'Size?', 'Noted M', 'Address?', 'M to Calle 1'])
    expect(world.sent.map((one) => one.by).join('')).toBe('aabba')
    expect(b.events).toEqual([{ name: 'order', outcome: 'resumed' }])
    expect(world.checkpoint).toBeNull()
    expect(b.engine.size).toBe(1) // K3: dropped when b next gets this chat.
    expect((await b.say('hi')).route).toBe('routed')
    expect([a.engine.size, b.engine.size]).toEqual([0, 0])
  })

  it('K1: a refused answer on the new replica is asked for again, and sends count on', async () => {
    const { world, a, b } = pair(persistent)
    await a.say('order')
    await b.say('XL')
    expect(world.said).toEqual(['Hello', 'Size?', 'Not XL'])
    expect(world.sent[2]?.ref).toEqual({ step: 'size', visit: 1, ordinal: 2 })
    expect(world.checkpoint?.wait).toEqual({ question: 0, sends: 3 })
    await a.say('S')
    expect(world.said.slice(3)).toEqual(['Noted S', 'Address?'])
  })

  it('K1, H11: at a later question the step starts over, and the message that woke it is consumed', async () => {
    const { world, a, b } = pair(
      (registry) =>
        void registry
          .flow('f', { on: 'f' })
          .form('who', [
            { name: 'first', question: 'First?' },
            { name: 'last', question: 'Last?' },
          ])
          .persistent(),
    )
    await a.say('f')
    await a.say('Ana')
    expect(world.checkpoint?.wait).toEqual({ question: 1, sends: 2 })
    await b.say('Gil')
    expect(world.said).toEqual(['First?', 'Last?', 'First?'])
    await b.say('Eva')
    await b.say('Paz')
    expect(world.said).toEqual(['First?', 'Last?', 'First?', 'Last?'])
    expect(world.checkpoint).toBeNull()
  })

  it('K3: the copy that was left behind is not used, though its replica is asked again', async () => {
    const { world, a, b } = pair(persistent)
    await a.say('order')
    await b.say('M')
    await b.say('Calle 1')
    expect((await a.say('S')).route).toBe('routed')
    expect(world.said).not.toContain('Noted S')
  })

  it('K1: a transition rides with the commit that ends the turn: two writes for entry, one a message after it', async () => {
    const { world, a } = pair(persistent)
    for (const body of ['order', 'M', 'Calle 1']) await a.say(body)
    expect(world.writes.map((one) => one.how)).toEqual(['write', 'commit', 'commit', 'commit'])
  })

  it('K1, ADR 5: a transition is written before a .do step, and at the latest 50 ms later', async () => {
    const steps: unknown[] = []
    const { world, a } = pair(
      (registry) =>
        void registry
          .flow('f', { on: 'f' })
          .ask('a', 'A?')
          .do('work', async () => void steps.push(world.checkpoint?.step, world.checkpoint?.answer))
          .step('slow', async () => {
            await world.clock.advance(49)
            steps.push(world.checkpoint?.step)
            await world.clock.advance(1)
            steps.push(world.checkpoint?.step)
          })
          .persistent(),
    )
    await a.say('f')
    await a.say('1')
    expect(steps).toEqual(['work', undefined, 'work', 'slow'])
  })

  it('K1: without coordination it is stored at waits and removed at the end, and goes on after a restart', async () => {
    const { world, a, b } = pair(persistent, {}, { coordinated: false })
    await a.say('order')
    expect(world.writes.map((one) => one.how)).toEqual(['commit'])
    await b.say('M')
    await b.say('Calle 1')
    expect(world.said).toEqual(['Hello', 'Size?', 'Noted M', 'Address?', 'M to Calle 1'])
    expect([world.checkpoint, b.events]).toEqual([null, []])
  })
})

describe('H1–H5: flows that are forwarded', () => {
  it('by default a plain flow is lost: the message is routed as new, and nothing was written', async () => {
    const { world, a, b } = pair(plain)
    await a.say('f')
    expect((await b.say('1')).route).toBe('routed')
    expect(world.writes).toEqual([])
    expect((await a.say('2')).route).toBe('routed')
    expect([a.engine.size, b.events]).toEqual([0, []])
  })

  it('H1: forward leaves an ephemeral checkpoint, of which another replica goes on', async () => {
    const { world, a, b } = pair(plain, FORWARD)
    await a.say('f')
    expect(world.checkpoint).toMatchObject({ ephemeral: true, ttlMs: 300_000, wait: { question: 0 } })
    await b.say('1')
    await a.say('2')
    expect(world.said).toEqual(['A?', 'B?', '{"a":"1","b":"2"}'])
    expect([...b.events, ...a.events]).toEqual([
      { name: 'f', outcome: 'forwarded' },
      { name: 'f', outcome: 'forwarded' },
    ])
  })

  it('H1: while it waits it lives at least as long as that wait', async () => {
    const { world, a } = pair(
      (registry) => void registry.flow('f', { on: 'f' }).ask('a', 'A?', { timeout: '1h' }).ask('b', 'B?'),
      { ...FORWARD, timeoutMs: 60_000 },
    )
    await a.say('f')
    expect(world.checkpoint).toMatchObject({ ttlMs: 3_600_000, wait: { timeoutMs: 3_600_000 } })
    await a.say('1')
    expect(world.checkpoint).toMatchObject({ ttlMs: 300_000, wait: { timeoutMs: 60_000 } })
  })

  it('H2, scenario 29: a flow that has changed goes to the fallback with `changed`, a persistent one only if its step is gone', async () => {
    const world = new World()
    const options = { forward: true, markers: true, fallback: 'notify' } as const
    const before: Define = (registry) => {
      registry.flow('f', { on: 'f' }).ask('a', 'A?').ask('b', 'B?')
      registry.flow('p', { on: 'p' }).ask('a', 'PA?').ask('b', 'PB?').persistent()
      registry.flow('q', { on: 'q' }).ask('a', 'QA?').persistent()
    }
    const after: Define = (registry) => {
      registry.flow('f', { on: 'f' }).ask('a', 'A?').ask('new', 'New?').ask('b', 'B?')
      registry
        .flow('p', { on: 'p' })
        .ask('a', 'PA?')
        .step('new', (c) => c.say('New'))
        .persistent()
      registry.flow('q', { on: 'q' }).ask('renamed', 'QA?').persistent()
    }
    const a = new Replica(world, 'a', before, { options })
    const b = new Replica(world, 'b', after, { options })
    for (const flow of ['f', 'p', 'q']) {
      await a.say(flow)
      await b.say('answer')
    }
    expect(b.events).toEqual([
      { name: 'f', outcome: 'notified', reason: 'changed' },
      { name: 'p', outcome: 'resumed' },
      { name: 'q', outcome: 'notified', reason: 'changed' },
    ])
    const interrupted = '[core.conversation.interrupted]'
    expect(world.said).toEqual(['A?', interrupted, 'PA?', 'New', 'QA?', interrupted])
  })

  it('H3: state that is not plain JSON is not forwarded: a marker with `state` is left instead', async () => {
    const seen: unknown[] = []
    const { world, a, b } = pair(
      (registry) =>
        void registry
          .flow<{ at: Date }>('f', { on: 'f' })
          .step('a', async (c) => {
            await c.ask('A?')
            c.state.at = new Date(0)
          })
          .step('b', async (c) => void (await c.ask('B?'))),
      { forward: true, markers: true, fallback: (info) => (seen.push(info), true) },
    )
    await a.say('f')
    expect([world.checkpoint?.step, world.marker]).toEqual(['a', null])
    await a.say('1')
    expect([world.checkpoint, world.marker?.reason]).toEqual([null, 'state'])
    expect(a.warnings.join()).toContain('c.state.at is an instance of Date')
    expect((await b.say('2')).route).toBe('conversation')
    expect(seen).toEqual([{ key: expect.any(String), name: 'f', kind: 'flow', reason: 'state', step: 'b' }])
    expect(b.events).toEqual([{ name: 'f', outcome: 'handled', reason: 'state' }])
    expect(world.marker).toBeNull()
  })

  it('H5: a replica that does not forward resumes an ephemeral checkpoint all the same, and deletes it', async () => {
    const world = new World()
    const a = new Replica(world, 'a', plain, { options: FORWARD })
    const b = new Replica(world, 'b', plain)
    await a.say('f')
    await b.say('1')
    expect(world.checkpoint).toBeNull()
    await b.say('2')
    expect(world.said).toEqual(['A?', 'B?', '{"a":"1","b":"2"}'])
    expect(b.events).toEqual([{ name: 'f', outcome: 'forwarded' }])
  })
})

describe('H6: what cannot be forwarded', () => {
  it('H6: costs two writes, the marker at the first wait and its removal', async () => {
    const { world, a } = pair(survey, FORWARD)
    for (const body of ['survey', '1', '2']) await a.say(body)
    expect(world.said).toEqual(['One?', 'Two?', '1 2'])
    expect(world.writes.map((one) => one.change.marker)).toEqual([
      expect.objectContaining({ reason: 'async' }),
      null,
    ])
    expect(world.writes.every((one) => one.how === 'commit')).toBe(true)
  })

  it('H6: without `handover` nothing is left', async () => {
    const { world, a } = pair(survey)
    await a.say('survey')
    expect(world.writes).toEqual([])
  })

  it('H6: a conversation that lasts longer than half its marker has it renewed', async () => {
    const { world, a } = pair(survey, FORWARD)
    await a.say('survey')
    await world.clock.advance(200_000)
    await a.say('1')
    expect(world.writes.filter((one) => (one.change.marker ?? null) !== null)).toHaveLength(2)
  })

  it.each([
    ['notify', 'conversation', 'notified', ['One?', 'Sorry']],
    ['restart', 'conversation', 'restarted', ['One?', 'One?']],
    ['drop', 'routed', 'dropped', ['One?']],
  ] as const)('H6: %s', async (fallback, route, outcome, said) => {
    const { world, a, b } = pair(survey, { markers: true, fallback, notifyMessage: 'Sorry' })
    await a.say('survey')
    expect((await b.say('1')).route).toBe(route)
    expect(world.said).toEqual(said)
    expect(b.events).toEqual([{ name: 'survey', outcome, reason: 'async' }])
    expect(world.marker === null).toBe(fallback !== 'restart')
    expect(a.engine.size).toBe(1)
    await a.say('2')
    expect(a.engine.size).toBe(fallback === 'restart' ? 1 : 0)
  })

  it('H6: restart keeps the initial state; a function may enter something else and says whether it consumed', async () => {
    const define: Define = (registry) => {
      registry.conversation<{ who: string }>('greet', async (c) => void (await c.ask(`Hi ${c.state.who}?`)))
      registry
        .flow<{ who: string }>('order')
        .step('s', async (c) => void (await c.ask(`Order, ${c.state.who}?`)))
        .persistent()
    }
    const restart = pair(define, { markers: true, fallback: 'restart' })
    await restart.a.handle((span) => restart.a.engine.enter(span, 'greet', { who: 'Ana' }))
    await restart.b.say('yes')
    expect(restart.world.said).toEqual(['Hi Ana?', 'Hi Ana?'])

    const own = pair(define, {
      markers: true,
      fallback: async (_info, ctx) => {
        await (ctx as { enter(name: string, state: object): Promise<void> }).enter('order', { who: 'Ana' })
        return true
      },
    })
    await own.a.handle((span) => own.a.engine.enter(span, 'greet', { who: 'Ana' }))
    await own.b.say('yes')
    expect(own.world.said).toEqual(['Hi Ana?', 'Order, Ana?'])
    expect(own.world.checkpoint).toMatchObject({ name: 'order', wait: { question: 0 } })
    expect(own.world.marker).toBeNull()
  })

  it('H6: a fallback that throws is reported, and does not throw for ever', async () => {
    const { a, b } = pair(survey, {
      markers: true,
      fallback: () => {
        throw new Error('migration')
      },
    })
    await a.say('survey')
    expect((await b.say('1')).route).toBe('routed')
    expect(b.reported).toEqual([new Error('migration')])
    await b.say('2')
    expect(b.reported).toHaveLength(1)
  })

  it('H6: a marker or checkpoint of a conversation that exists no more is removed with `changed`', async () => {
    const world = new World()
    const a = new Replica(world, 'a', survey, { options: FORWARD })
    const b = new Replica(world, 'b', plain, { options: { ...FORWARD, fallback: 'restart' } })
    await a.say('survey')
    expect((await b.say('1')).route).toBe('routed')
    expect(b.events).toEqual([{ name: 'survey', outcome: 'dropped', reason: 'changed' }])
    expect(world.marker).toBeNull()
  })

  it('a checkpoint that nobody can read is reported with its key, removed, and the chat goes on', async () => {
    const { world, b } = pair(persistent)
    world.checkpoint = { v: 9, name: 'order', state: null } as unknown as FlowCheckpoint
    expect((await b.say('order')).route).toBe('entered:order')
    expect(String(b.reported[0])).toContain('c1')
    expect(world.checkpoint).toMatchObject({ v: 1, step: 'size', wait: { question: 0 } })
  })
})
