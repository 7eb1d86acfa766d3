/** Replicas that die: what they held, what waited with them, what they had taken on. Real processes, real Redis. */
import { describe, expect, it } from '@jest/globals'
import { setTimeout as delay } from 'node:timers/promises'
import { waitFor } from '../support/index.js'
import { Crew } from './support/bots.js'

const LEASE_MS = 2000
const MINUTE = 60_000

describe('kill -9', () => {
  it(
    'scenario 3: the next message of the chat is handled within a lease and a second; no other chat is delayed',
    async () => {
      const crew = new Crew({ leaseMs: LEASE_MS })
      const [a, b] = await Promise.all([crew.join('a'), crew.join('b')])
      a.write('held', 'slow 60000', 'm1')
      await a.of('handling', 'm1')
      await crew.kill(a)
      const killed = performance.now()
      b.write('held', 'next', 'm2')
      const delays: number[] = []
      let over = false
      const others = async () => {
        for (let n = 0; !over; n += 1) {
          const began = performance.now()
          b.write(`other-${n}`, 'hi', `o${n}`)
          await b.of('handled', `o${n}`)
          delays.push(performance.now() - began)
          await delay(50)
        }
      }
      const steady = others()
      const handling = await b.of('handling', 'm2')
      expect(performance.now() - killed).toBeLessThan(LEASE_MS + 1000)
      over = true
      await steady
      expect(String(handling['previousHolder'])).toMatch(/^a~/)
      expect(delays.length).toBeGreaterThan(10)
      expect(Math.max(...delays)).toBeLessThan(LEASE_MS / 2)
      await crew.hears('held', ['echo next'])
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )

  it(
    'scenario 4, T8: tickets of a dead replica behind a live holder are skipped without waiting for them',
    async () => {
      const crew = new Crew({ leaseMs: LEASE_MS })
      const [a, b, c] = await Promise.all([crew.join('a'), crew.join('b'), crew.join('c')])
      a.write('chat', `slow ${LEASE_MS * 2}`, 'm1')
      await a.of('handling', 'm1')
      b.write('chat', 'of the dead', 'm2')
      b.write('chat', 'of the dead too', 'm3')
      await Promise.all([b.of('accepted', 'm2'), b.of('accepted', 'm3')])
      c.write('chat', 'of the living', 'm4')
      await c.of('accepted', 'm4')
      await crew.kill(b)
      const [handled, next] = await Promise.all([a.of('handled', 'm1'), c.of('handling', 'm4')])
      // Waiting for a dead session would take a lease.
      expect(Number(next['at']) - Number(handled['at'])).toBeLessThan(LEASE_MS / 3)
      expect(String(next['previousHolder'])).toMatch(/^a~/)
      await crew.hears('chat', [`did slow ${LEASE_MS * 2}`, 'echo of the living'])
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )
})

describe('scenario 5: the platform delivers again what a replica died with', () => {
  it(
    'D1, D2: with durability it is handled and answered exactly once, however often it is delivered',
    async () => {
      const crew = new Crew({ leaseMs: LEASE_MS, durability: true })
      const [a, b] = await Promise.all([crew.join('a'), crew.join('b')])
      // One that had not answered yet, one that had, one that nobody delivers again.
      a.write('before', 'slow 2500', 'm1')
      a.write('after', 'hang a', 'm2')
      a.write('alone', 'slow 2500', 'm3')
      await Promise.all([a.of('handling', 'm1'), a.of('replied', 'm2'), a.of('handling', 'm3')])
      await crew.kill(a)
      b.write('before', 'slow 2500', 'm1')
      b.write('after', 'hang a', 'm2')
      await Promise.all(['m1', 'm2', 'm3'].map((id) => b.of('handled', id)))
      b.write('before', 'slow 2500', 'm1')
      b.write('alone', 'slow 2500', 'm3')
      await Promise.all([b.of('accepted', 'm3'), b.of('accepted', 'm1')])
      b.write('before', 'last', 'm4')
      await crew.hears('before', ['did slow 2500', 'echo last'])
      await crew.hears('after', ['did hang a'])
      await crew.hears('alone', ['did slow 2500'])
      expect(b.told('handling')).toHaveLength(4)
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )

  it(
    'Z3: without durability it is handled at least once: the copy is not taken for a double of what was never done',
    async () => {
      const crew = new Crew({ leaseMs: LEASE_MS })
      const [a, b] = await Promise.all([crew.join('a'), crew.join('b')])
      a.write('chat', 'slow 1000', 'm1')
      await a.of('handling', 'm1')
      await crew.kill(a)
      b.write('chat', 'slow 1000', 'm1')
      await crew.hears('chat', ['did slow 1000'])
      // Now it is done: a copy at another replica is a double.
      const c = await crew.join('c')
      c.write('chat', 'slow 1000', 'm1')
      await c.of('accepted', 'm1')
      c.write('chat', 'last', 'm2')
      await crew.hears('chat', ['did slow 1000', 'echo last'])
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )
})

describe('scenario 11, C3: a replica comes back under its name within the lease of its predecessor', () => {
  it(
    'it inherits no turn, waits for it, and the leadership changes once',
    async () => {
      const crew = new Crew({ leaseMs: LEASE_MS, env: { LEAD: 'job:report' } })
      const a = await crew.join('a')
      const before = await a.next('leader')
      const [again, b] = await Promise.all([crew.standBy('a'), crew.join('b')])
      a.write('chat', 'slow 60000', 'm1')
      const held = await a.of('handling', 'm1')
      const { incarnation } = await a.status()
      await crew.kill(a)
      const killedAt = Date.now()
      again.process.send({ do: 'start' })
      const { incarnation: second } = await again.next('started')
      expect(second).not.toBe(incarnation)
      again.write('chat', 'next', 'm2')
      const next = await again.of('handling', 'm2')
      // The dead one's lease was renewed at most a third of a lease before, or a little more under load.
      expect(Number(next['at']) - killedAt).toBeGreaterThan(LEASE_MS / 2)
      expect(next['previousHolder']).toBe(incarnation)
      expect(Number(next['fence'])).toBeGreaterThan(Number(held['fence']))
      const led = await waitFor(() => crew.told('leader')[1], { what: 'somebody leads again' })
      expect(Number(led['fence'])).toBeGreaterThan(Number(before['fence']))
      await crew.hears('chat', ['echo next'])
      expect(crew.told('leader')).toHaveLength(2)
      expect(b.told('error')).toEqual([])
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )
})
