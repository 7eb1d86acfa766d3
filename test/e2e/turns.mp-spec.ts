/** One replica per chat at a time, in order: slow, frozen and blocked replicas, and timers left behind. */
import { describe, expect, it } from '@jest/globals'
import { Crew } from './support/bots.js'

const LEASE_MS = 1500
const MINUTE = 60_000

describe('scenario 2', () => {
  it(
    'T3: a handler that works for three leases keeps its turn',
    async () => {
      const crew = new Crew({ leaseMs: LEASE_MS })
      const [a, b] = await Promise.all([crew.join('a'), crew.join('b')])
      a.write('chat', `slow ${LEASE_MS * 3}`, 'm1')
      await a.of('handling', 'm1')
      b.write('chat', 'next', 'm2')
      await crew.hears('chat', [`did slow ${LEASE_MS * 3}`, 'echo next'])
      expect(crew.told('lease-lost')).toEqual([])
      const [did] = crew.told('sent')
      expect(Number((await b.of('handling', 'm2'))['at'])).toBeGreaterThanOrEqual(Number(did?.['at']))
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )

  it.each([
    ['without durability the copy that the platform sends', false],
    ['with durability the record', true],
  ])(
    'L2: a handler that blocks the event loop for longer loses it; its late send is refused; %s is answered once',
    async (_what, durability) => {
      const crew = new Crew({ leaseMs: LEASE_MS, durability })
      const [a, b] = await Promise.all([crew.join('a'), crew.join('b')])
      const body = `block a ${LEASE_MS * 2}`
      a.write('chat', body, 'm1')
      await a.of('handling', 'm1')
      if (!durability) b.write('chat', body, 'm1')
      b.write('chat', 'next', 'm2')
      expect(await a.of('send-refused', 'm1')).toMatchObject({
        reason: expect.stringMatching(/frozen|expired/),
      })
      expect(await a.next('lease-lost')).toMatchObject({ reason: expect.stringMatching(/frozen|expired/) })
      await crew.hears('chat', [`did ${body}`, 'echo next'])
      expect(crew.told('sent').map(({ replica }) => replica)).toEqual(['b', 'b'])
      // It is of use again, under a new incarnation.
      a.write('chat', 'again', 'm3')
      await crew.hears('chat', [`did ${body}`, 'echo next', 'echo again'])
      expect(await crew.disband()).toEqual([])
      expect(crew.said('chat')).toHaveLength(3)
    },
    MINUTE,
  )

  it(
    'L2, D1: one that is stopped (SIGSTOP) in the middle of a message for longer than its lease: one reply in all',
    async () => {
      const crew = new Crew({ leaseMs: LEASE_MS, durability: true })
      const [a, b] = await Promise.all([crew.join('a'), crew.join('b')])
      a.write('chat', 'order', 'm1')
      await crew.hears('chat', ['size?'])
      a.write('chat', 'M', 'm2')
      await crew.hears('chat', ['size?', 'color?'])
      a.write('other', 'slow 300', 'm3')
      await a.of('handling', 'm3')
      a.process.pause()
      b.write('chat', 'red', 'm4')
      await crew.hears('chat', ['size?', 'color?', 'ordered M red'])
      await b.of('handled', 'm3')
      a.process.resume()
      expect(await a.of('send-refused', 'm3')).toMatchObject({
        reason: expect.stringMatching(/frozen|expired/),
      })
      a.write('chat', 'thanks', 'm5')
      await crew.hears('chat', ['size?', 'color?', 'ordered M red', 'echo thanks'])
      expect(await crew.disband()).toEqual([])
      expect(crew.said('other')).toEqual(['did slow 300'])
    },
    MINUTE,
  )
})

describe('two replicas', () => {
  it(
    'scenario 1, T1: releases race takes thousands of times: nobody is left waiting, nobody is inside with another',
    async () => {
      const crew = new Crew({ leaseMs: 5000 })
      const [a, b] = await Promise.all([crew.join('a'), crew.join('b')])
      for (const one of [a, b]) one.process.send({ do: 'hammer', key: 'line:e2e/hammered', turns: 1500 })
      for (const one of [a, b]) {
        const found = await one.next('hammered', { timeoutMs: 50_000 })
        expect(found).toMatchObject({ turns: 1500, overlaps: 0, unordered: 0, failures: [] })
        // A ticket that was forgotten would be found by a heartbeat, a third of a lease later.
        expect(found['longestMs']).toBeLessThan(5000 / 3)
      }
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )

  it.each([
    ['without durability', false],
    ['with durability', true],
  ])(
    'scenario 13: ten messages within 100 ms over both: in ticket order, the counter of ctx.user exact, %s',
    async (_how, durability) => {
      const crew = new Crew({ durability })
      const [a, b] = await Promise.all([crew.join('a'), crew.join('b')])
      for (let n = 0; n < 10; n += 1) (n % 2 === 0 ? a : b).write('chat', 'count', `m${n}`)
      await crew.hears(
        'chat',
        Array.from({ length: 10 }, (_, n) => `count ${n + 1}`),
      )
      const [first, last] = [crew.told('accepted')[0], crew.told('accepted').at(-1)]
      expect(Number(last?.['at']) - Number(first?.['at'])).toBeLessThan(1000)
      const handled = crew.told('handled').toSorted((x, y) => Number(x['fence']) - Number(y['fence']))
      expect(new Set(handled.map(({ replica }) => replica)).size).toBe(2)
      // What came to one replica is in that order, with durability all of it is in the order of arrival.
      for (const rest of [0, 1]) {
        const numbers = handled.map(({ id }) => Number(String(id).slice(1))).filter((n) => n % 2 === rest)
        expect(numbers).toEqual(numbers.toSorted((x, y) => x - y))
      }
      const places = handled.map(({ seq }) => Number(seq))
      expect(places).toEqual(places.toSorted((x, y) => x - y))
      expect(crew.told('error')).toEqual([])
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )

  it(
    'scenario 12, C3: with one replicaId by mistake both work, under incarnations of their own, and are warned',
    async () => {
      const crew = new Crew({ leaseMs: 2000 })
      const [a, b] = await Promise.all([crew.join('same'), crew.join('same')])
      const [one, two] = await Promise.all([a.status(), b.status()])
      expect(one['incarnation']).not.toBe(two['incarnation'])
      a.write('chat', 'order', 'm1')
      await a.of('handled', 'm1')
      b.write('chat', 'L', 'm2')
      await b.of('handled', 'm2')
      a.write('chat', 'blue', 'm3')
      await crew.hears('chat', ['size?', 'color?', 'ordered L blue'])
      const warning = await Promise.any(
        [a, b].map((replica) => replica.next('log', { where: ({ text }) => /replicaId/.test(String(text)) })),
      )
      expect(warning).toMatchObject({ level: 'warn' })
      expect(crew.told('lease-lost')).toEqual([])
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )

  it(
    'scenario 31, T5: a timeout set on A fires after the chat moved to B: A says nothing, that of B acts once',
    async () => {
      const crew = new Crew()
      const [a, b] = await Promise.all([crew.join('a'), crew.join('b')])
      a.write('chat', 'patient 1500', 'm1')
      await crew.hears('chat', ['first?'])
      b.write('chat', 'here', 'm2')
      await crew.hears('chat', ['first?', 'second?'])
      expect(await b.next('handover')).toMatchObject({ name: 'patient', outcome: 'resumed' })
      await crew.hears('chat', ['first?', 'second?', 'second timed out'])
      // Nothing is left of it, at either.
      a.write('chat', 'still there?', 'm3')
      await crew.hears('chat', ['first?', 'second?', 'second timed out', 'echo still there?'])
      expect(crew.told('sent').map(({ replica }) => replica)).toEqual(['a', 'b', 'b', 'a'])
      expect(await crew.disband()).toEqual([])
      expect(crew.said('chat')).toHaveLength(4)
    },
    MINUTE,
  )
})
