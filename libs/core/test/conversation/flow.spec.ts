/** Flows and conversations in one process (B1, B3) and the order of steps, on one replica. */
import { describe, expect, it } from '@jest/globals'
import { TooManyAttemptsError, WaitTimeoutError } from '../../src/contracts/errors.js'
import { defineFlow } from '../../src/conversation/index.js'
import { Replica, type ReplicaOptions } from './mini-runtime.js'
import { KEY, World } from './world.js'
import type { FlowRegistry } from '../../src/conversation/index.js'

const ALONE: ReplicaOptions = { coordinated: false }

function alone(define: (registry: FlowRegistry) => void, options: ReplicaOptions = ALONE) {
  const world = new World()
  return { world, bot: new Replica(world, 'a', define, options) }
}

describe('B3: steps of a flow', () => {
  it('B3: runs steps in the order declared, asks, works and ends', async () => {
    const done: unknown[] = []
    const { world, bot } = alone((registry) =>
      registry
        .flow<{ size: string; address: string }>('order', { on: ['pedido', /^order/i] })
        .step('size', async (c) => {
          c.state.size = await c.ask('Size?', { validate: (m) => ['S', 'M'].includes(m.body) || 'S or M' })
        })
        .ask('address', (c) => `Where to send ${c.state.size}?`)
        .do('charge', async (c) => {
          await c.say('charged')
          done.push({ ...c.state })
        }),
    )
    expect((await bot.say('  PEDIDO ')).route).toBe('entered:order')
    await bot.say('XL')
    await bot.say('M')
    expect((await bot.say('Calle 1')).route).toBe('conversation')
    expect(world.said).toEqual(['Size?', 'S or M', 'Where to send M?', 'charged'])
    expect(done).toEqual([{ size: 'M', address: 'Calle 1' }])
    expect(bot.engine.size).toBe(0)
    expect((await bot.say('M')).route).toBe('routed')
  })

  it('B1: without coordination a flow that is not persistent writes nothing and no event comes', async () => {
    const { world, bot } = alone((registry) => registry.flow('f', { on: 'f' }).ask('a', 'A?').ask('b', 'B?'))
    for (const body of ['f', '1', '2']) await bot.say(body)
    expect(world.said).toEqual(['A?', 'B?'])
    expect(world.writes).toEqual([])
    expect(bot.events).toEqual([])
  })

  it('B3: goto and end leave the order, and only where they are returned', async () => {
    const { world, bot } = alone((registry) =>
      registry
        .flow('f', { on: 'f' })
        .step('size', async (c) => void (await c.ask('Size?')))
        .step('confirm', async (c) => {
          const answer = await c.ask('Sure?')
          if (answer === 'no') return c.goto('size')
          if (answer === 'never') return c.end()
          c.end()
          return undefined
        })
        .step('thanks', (c) => c.say('Thanks')),
    )
    for (const body of ['f', 'M', 'no', 'L', 'yes']) await bot.say(body)
    expect(world.said).toEqual(['Size?', 'Sure?', 'Size?', 'Sure?', 'Thanks'])
    expect(bot.warnings.join()).toContain('not returned')
    for (const body of ['f', 'M', 'never']) await bot.say(body)
    expect(world.said.slice(5)).toEqual(['Size?', 'Sure?'])
    expect(bot.engine.size).toBe(0)
  })

  it('B3: a form asks its questions one after the other into the state', async () => {
    const states: unknown[] = []
    const { world, bot } = alone((registry) =>
      registry
        .flow<{ name: string; age: string }>('f', { on: 'f' })
        .form('who', [
          { name: 'name', question: 'Name?' },
          {
            name: 'age',
            question: (c) => `Age of ${c.state.name}?`,
            validate: (m) => /^\d+$/.test(m.body) || 'A number',
          },
        ])
        .do((c) => void states.push({ ...c.state })),
    )
    for (const body of ['f', 'Ana', 'old', '33']) await bot.say(body)
    expect(world.said).toEqual(['Name?', 'Age of Ana?', 'A number'])
    expect(states).toEqual([{ name: 'Ana', age: '33' }])
  })

  it('B3: an asynchronous conversation asks in the same way and gets its context', async () => {
    const answers: unknown[] = []
    const { world, bot } = alone((registry) =>
      registry.conversation<{ from: string }>('survey', async (c) => {
        answers.push(
          c.state.from,
          (await c.askMessage('First?')).id,
          await c.ask('Second?'),
          c.message.body,
          c.chatId,
        )
      }),
    )
    await bot.handle((span) => bot.engine.enter(span, 'survey', { from: 'test' }))
    await bot.say('one')
    await bot.say('two')
    expect(world.said).toEqual(['First?', 'Second?'])
    expect(answers).toEqual(['test', 'm2', 'two', 'two', 'c1'])
  })

  it('B3: a definition given as an object runs like a chain, and ctx.enter passes from one to another', async () => {
    const { world, bot } = alone((registry) => {
      registry.add(
        defineFlow({
          name: 'plain',
          on: /plain/,
          steps: [
            { name: 'one', run: (c) => c.ask('One?') },
            {
              name: 'two',
              run: (c) => (c.ctx as unknown as { enter(n: string): Promise<void> }).enter('other'),
            },
          ],
        }),
      )
      registry.conversation('other', (c) => c.ask('Other?'))
    })
    await bot.say('a plain one')
    const { route } = await bot.say('1')
    expect(route).toBe('conversation')
    expect(world.said).toEqual(['One?', 'Other?'])
    await bot.say('2')
    expect(bot.engine.size).toBe(0)
  })
})

describe('B3: answers', () => {
  it('validators may be slow, repeat the question, and give up after maxAttempts', async () => {
    const caught: unknown[] = []
    const { world, bot } = alone((registry) =>
      registry.flow('f', { on: 'f' }).step('s', async (c) => {
        await c.ask('Ok?', { validate: async (m) => Promise.resolve(m.body === 'ok') })
        await c
          .ask('Last?', { validate: () => 'No', maxAttempts: 2 })
          .catch((error: unknown) => caught.push(error))
        await c.ask('Again?', { validate: () => 'No', maxAttempts: 1 })
      }),
    )
    for (const body of ['f', 'x', 'ok', '1', '2', '3']) await bot.say(body)
    expect(world.said).toEqual(['Ok?', 'Ok?', 'Last?', 'No', 'Again?'])
    expect(caught).toEqual([expect.any(TooManyAttemptsError)])
    expect(bot.engine.size).toBe(0)
    expect(bot.reported).toEqual([])
  })

  it('H7: what hooks made of a message is what the conversation sees', async () => {
    const { world, bot } = alone((registry) =>
      registry.flow('f', { on: 'f' }).step('s', async (c) => {
        await c.say(`${await c.ask('Say?')} in ${String(c.lang)}`)
      }),
    )
    await bot.say('f')
    await bot.say(world.message('', { type: 'media' }), {
      hooks: { body: 'transcript', type: 'text', lang: 'es' },
    })
    expect(world.said).toEqual(['Say?', 'transcript in es'])
  })

  it('B3: two questions at once are put one after the other; an ask that nobody awaits is noticed', async () => {
    const { world, bot } = alone((registry) =>
      registry
        .flow('f', { on: 'f' })
        .step('both', async (c) => void (await Promise.all([c.ask('A?'), c.ask('B?')])))
        .step('forgot', (c) => void c.ask('Lost?'))
        .step('end', (c) => c.say('end')),
    )
    for (const body of ['f', '1', '2']) await bot.say(body)
    expect(world.said).toEqual(['A?', 'B?', 'Lost?', 'end'])
    expect(bot.warnings.join()).toContain('await c.ask()')
    expect(bot.engine.size).toBe(0)
  })
})

describe('T5: a step that goes on by itself', () => {
  it('T5: code that no longer waits for its question goes on under a turn of its own, or the next message’s', async () => {
    let pass = (): void => undefined
    const { world, bot } = alone((registry) =>
      registry
        .flow('f', { on: 'f' })
        .step('race', async (c) => {
          const other = new Promise<void>((resolve) => (pass = resolve))
          await Promise.race([c.ask('A?'), other])
        })
        .step('next', async (c) => void (await c.say(`B: ${await c.ask('B?')}`))),
    )
    await bot.say('f')
    pass()
    await world.clock.settle()
    await world.tail
    expect(world.said).toEqual(['A?', 'B?'])
    await bot.say('1')
    await bot.say('f')
    let free = (): void => undefined
    const slow = bot.handle(() => new Promise<void>((resolve) => (free = resolve)))
    await world.clock.settle()
    const next = bot.say('2')
    pass()
    await world.clock.settle()
    free()
    await Promise.all([slow, next])
    expect(world.said.slice(2)).toEqual(['B: 1', 'A?', 'B?', 'B: 2'])
    expect(bot.engine.size).toBe(0)
  })
})

describe('errors of a conversation', () => {
  it('a timeout ends it quietly unless it is caught', async () => {
    const caught: unknown[] = []
    const { world, bot } = alone((registry) => {
      registry.flow('quiet', { on: 'quiet' }).ask('a', 'A?', { timeout: '5m' })
      registry.flow('caught', { on: 'caught' }).step('s', async (c) => {
        await c.ask('B?', { timeout: 1_000 }).catch((error: unknown) => caught.push(error))
        await c.say('Too late')
      })
    })
    await bot.say('quiet')
    await world.clock.advance(300_000)
    await bot.say('caught')
    await world.clock.advance(1_000)
    await world.tail
    expect(world.said).toEqual(['A?', 'B?', 'Too late'])
    expect(caught).toEqual([expect.any(WaitTimeoutError)])
    expect(bot.engine.size).toBe(0)
    expect(bot.reported).toEqual([])
    expect(world.clock.timers).toBe(0)
  })

  it('any other error ends it and is reported once', async () => {
    const { bot } = alone((registry) =>
      registry.flow('f', { on: 'f' }).step('s', async (c) => {
        await c.ask('A?')
        throw new Error('boom')
      }),
    )
    await bot.say('f')
    await bot.say('x')
    expect(bot.reported).toEqual([new Error('boom')])
    expect(bot.engine.size).toBe(0)
    expect((await bot.say('x')).route).toBe('routed')
  })

  it('a loop of gotos without a question is stopped, and an unknown target is named', async () => {
    const { bot } = alone((registry) => {
      registry.flow('loop', { on: 'loop' }).step('a', (c) => c.goto('a'))
      const where = 'nowhere'
      registry.flow('lost', { on: 'lost' }).step('here', (c) => c.goto(where))
    })
    await bot.say('loop')
    await bot.say('lost')
    expect(bot.reported.map(String)).toEqual([
      expect.stringContaining('its gotos form a loop'),
      expect.stringContaining('has no step "nowhere"'),
    ])
  })

  it('an action that nobody awaits never becomes an unhandled rejection, and a send that failed can be caught', async () => {
    const { world, bot } = alone((registry) =>
      registry.flow('f', { on: 'f' }).step('s', async (c) => {
        void c.say('lost')
        await expect(c.say('also')).rejects.toThrow('offline')
        await c.ask('A?').catch(() => undefined)
      }),
    )
    bot.beforeSend = () => Promise.reject(new Error('offline'))
    await bot.say('f')
    await world.clock.settle()
    expect(bot.engine.size).toBe(0)
  })
})

describe('T5: c.idle', () => {
  it('T5: calls back under a turn while the step waits in silence, and stops with the step', async () => {
    const { world, bot } = alone((registry) =>
      registry
        .flow('f', { on: 'f' })
        .step('s', async (c) => {
          c.idle('1m', () => c.say('Still there?'))
          await c.ask('A?')
          await c.ask('B?')
        })
        .ask('c', 'C?'),
    )
    await bot.say('f')
    await world.clock.advance(90_000)
    await bot.say('1')
    await world.clock.advance(30_000)
    await bot.say('2')
    await world.clock.advance(600_000)
    await world.tail
    expect(world.said).toEqual(['A?', 'Still there?', 'B?', 'C?'])
    expect(world.sent[1]?.ref).toEqual({ step: 's', visit: 1, ordinal: 0 })
    expect(world.sent[2]?.ref).toEqual({ step: 's', visit: 1, ordinal: 1 })
  })

  it('T5: may end the conversation or go elsewhere; the waiting step is abandoned; it cannot ask', async () => {
    const { world, bot } = alone((registry) =>
      registry
        .flow('f', { on: 'f' })
        .step('s', async (c) => {
          c.idle('1m', async () => {
            await expect(c.ask('?')).rejects.toThrow('inside c.idle')
            return c.goto('bye')
          })
          await c.ask('A?')
          await c.say('never')
        })
        .step('bye', (c) => c.say('Bye')),
    )
    await bot.say('f')
    await world.clock.advance(60_000)
    await world.tail
    expect(world.said).toEqual(['A?', 'Bye'])
    expect(bot.engine.size).toBe(0)
  })
})

describe('leaving', () => {
  it('ctx.leave ends without running more, in memory and in the store', async () => {
    const world = new World()
    const define = (registry: FlowRegistry) =>
      void registry.flow('f', { on: 'f' }).ask('a', 'A?').persistent()
    const a = new Replica(world, 'a', define)
    await a.say('f')
    const b = new Replica(world, 'b', define)
    const left: boolean[] = []
    await b.handle(async (span) => left.push(await b.engine.leave(span)))
    expect([world.checkpoint, left]).toEqual([null, [true]])
    expect((await a.say('x')).route).toBe('routed')
    await a.handle(async (span) => left.push(await a.engine.leave(span)))
    expect(left).toEqual([true, false])
    expect(a.engine.localRevision(KEY)).toBeUndefined()
  })
})
