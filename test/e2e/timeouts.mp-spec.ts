/** Timeouts of waits that nobody is left to notice, with durability: real processes, real Redis (ADR 8). */
import { describe, expect, it } from '@jest/globals'
import { Crew } from './support/bots.js'

const LEASE_MS = 1500
const MINUTE = 60_000

describe('the timeout of a wait', () => {
  it(
    'H10: fires once after a kill -9 of the only replica that knew of it, at one of those that come later',
    async () => {
      const crew = new Crew({ leaseMs: LEASE_MS, durability: true })
      const a = await crew.join('a')
      a.write('chat', 'patient 2000', 'm1')
      a.write('answered', 'patient 2000', 'm2')
      await Promise.all([a.of('handled', 'm1'), a.of('handled', 'm2')])
      a.write('answered', 'here', 'm3')
      await a.of('handled', 'm3')
      await crew.kill(a)
      const [b, c] = await Promise.all([crew.join('b'), crew.join('c')])
      await crew.hears('chat', ['first?', 'first timed out'])
      // Its first question was answered: it is the second one's timeout that acts.
      await crew.hears('answered', ['first?', 'second?', 'second timed out'])
      const handovers = [b, c].flatMap((one) => one.told('handover'))
      expect(handovers.map(({ outcome }) => outcome)).toEqual(['resumed', 'resumed'])
      // Two sweeps later nothing more has come of it, and the chats are free.
      b.write('chat', 'hello', 'm4')
      await crew.hears('chat', ['first?', 'first timed out', 'echo hello'])
      await new Promise((resolve) => setTimeout(resolve, LEASE_MS))
      expect(await crew.disband()).toEqual([])
      expect(crew.said('chat')).toHaveLength(3)
      expect(crew.said('answered')).toHaveLength(3)
    },
    MINUTE,
  )

  it(
    'scenario 31, T5: a frozen replica that goes on after another one has acted says nothing',
    async () => {
      const crew = new Crew({ leaseMs: LEASE_MS, durability: true })
      const [a, b] = await Promise.all([crew.join('a'), crew.join('b')])
      a.write('chat', 'patient 2000', 'm1')
      await a.of('handled', 'm1')
      a.process.pause()
      await crew.hears('chat', ['first?', 'first timed out'])
      a.process.resume()
      a.write('chat', 'hello', 'm2')
      await crew.hears('chat', ['first?', 'first timed out', 'echo hello'])
      expect(
        crew
          .told('sent')
          .map(({ replica }) => replica)
          .slice(0, 2),
      ).toEqual(['a', 'b'])
      expect(b.told('handover')).toMatchObject([{ name: 'patient', outcome: 'resumed' }])
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )
})
