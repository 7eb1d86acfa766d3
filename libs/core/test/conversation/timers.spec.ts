/** Timers after a hand-over, and what copies cost (T5, H10). */
import { describe, expect, it } from '@jest/globals'
import { pair, persistent, type Define } from './scenes.js'

describe('T5: timers after a hand-over', () => {
  const timed: Define = (registry) =>
    void registry
      .flow('f', { on: 'f' })
      .step('s', async (c) => {
        c.idle('1m', () => c.say(`idle`))
        await c.ask('A?', { timeout: '5m' }).catch(() => c.say('timeout'))
        await c.ask('B?', { timeout: '5m' }).catch(() => c.say('timeout'))
      })
      .persistent()

  it('scenario 31, T5: the timers of a copy that was left behind do nothing, and drop it; the new ones act once', async () => {
    const { world, a, b } = pair(timed)
    await a.say('f')
    await world.clock.advance(30_000)
    await b.say('1')
    const before = world.checkpoint
    await world.clock.advance(40_000)
    await world.tail
    expect(world.said).toEqual(['A?', 'B?'])
    expect(a.engine.size).toBe(0)
    expect(world.checkpoint).toEqual(before)
    await world.clock.advance(400_000)
    await world.tail
    // H10: the wait that b began has b's timers; a's would have ended it 30 s earlier.
    expect(world.sent.slice(2).map((one) => [one.by, one.text])).toEqual([
      ['b', 'idle'],
      ['b', 'timeout'],
    ])
    expect([world.checkpoint, b.engine.size]).toEqual([null, 0])
  })
})

describe('bounded memory', () => {
  it('a chat without a conversation has no copy; a copy that the store can replace may be let go', async () => {
    const { a } = pair(persistent)
    await a.say('hi')
    expect(a.engine.size).toBe(0)
  })

  it.each([true, false])(
    'copies that the store can replace are let go, least recently used first; others stay (coordinated: %s)',
    async (coordinated) => {
      const { world, a } = pair(
        (registry) => {
          persistent(registry)
          registry.flow('memory', { on: 'memory' }).ask('a', 'A?')
        },
        {},
        { coordinated },
      )
      // The stand-in keeps three copies; other chats are entered beside its queue.
      for (const key of ['c2', 'c3']) await a.elsewhere(key, 'memory')
      for (const key of ['c4', 'c5', 'c6']) await a.elsewhere(key, 'order')
      expect(a.engine.size).toBe(3)
      expect(a.engine.localRevision('c2')).toBeNull()
      expect(a.engine.localRevision('c4')).toBeUndefined()
      expect(a.engine.localRevision('c6')).toBe('c6')
      expect(world.said).toHaveLength(8)
    },
  )

  it.each([true, false])(
    'B1: a copy stays while a span of its chat is open, which has read nothing because of it (coordinated: %s)',
    async (coordinated) => {
      const { world, a } = pair(persistent, {}, { coordinated })
      await a.say('order')
      const accept = a.engine.accept.bind(a.engine)
      a.engine.accept = async (span) => {
        // As a hook may take, other chats being served meanwhile.
        for (const key of ['c2', 'c3', 'c4', 'c5']) await a.elsewhere(key, 'order')
        return accept(span)
      }
      expect((await a.say('M')).route).toBe('conversation')
      expect(world.said.slice(-2)).toEqual(['Noted M', 'Address?'])
      expect(a.engine.size).toBe(3)
    },
  )
})
