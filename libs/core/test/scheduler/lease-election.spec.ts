/** Elections over leases: keeping, losing, faults of the store, late answers. */
import { describe, expect, it } from '@jest/globals'
import { LeaseLostError, MemoryStore, silentLogger, type Leadership, type Leases } from '../../src/index.js'
import { LeaseElection } from '../../src/scheduler/lease-election.js'
import { ManualClock, PausableClock } from '../../src/testing/index.js'

const LEASE_MS = 6000

function world() {
  const clock = new ManualClock()
  const store = new MemoryStore({ clock })
  const said: string[] = []
  /** A candidate with a clock of its own, and with calls that a test may replace. */
  const stand = (who: string) => {
    const own = new PausableClock(clock)
    const inner = store.leases()
    const leases: Leases = {
      acquireLockFenced: (key, ttlMs) => inner.acquireLockFenced(key, ttlMs),
      renewLock: (key, token, ttlMs) => inner.renewLock(key, token, ttlMs),
      releaseLock: (key, token) => inner.releaseLock(key, token),
    }
    const led: Leadership[] = []
    const election = new LeaseElection({ leases, leaseMs: LEASE_MS, clock: own, logger: silentLogger })
    const candidacy = election.campaign('scheduler:shop', {
      onLead: (leadership) => {
        led.push(leadership)
        said.push(`${who} leads`)
      },
      onFollow: (reason) => said.push(`${who} ${reason}`),
    })
    return { candidacy, leases, led, clock: own }
  }
  return { clock, said, stand, store }
}

describe('J1: leadership by leases', () => {
  it('one leads, and keeps it; released, the next has it within a third of a lease, under a higher fence', async () => {
    const { clock, said, stand } = world()
    const a = stand('a')
    await clock.settle()
    const b = stand('b')
    await clock.advance(10 * LEASE_MS)
    expect(said).toEqual(['a leads', 'b standby'])
    await a.candidacy.stop()
    await clock.advance(LEASE_MS / 3)
    expect(said.slice(2)).toEqual(['a stopped', 'b leads'])
    expect(b.led[0]?.fence).toBeGreaterThan(a.led[0]?.fence ?? Infinity)
    expect(() => a.led[0]?.assertHeld()).toThrow(LeaseLostError)
    expect(a.led[0]?.signal.aborted).toBe(false)
    await b.candidacy.stop()
    await b.candidacy.stop()
    expect(clock.timers).toBe(0)
  })

  it('L2: frozen, it lets go by its own clock before the store gives the lease to another', async () => {
    const { clock, said, stand } = world()
    const a = stand('a')
    await clock.settle()
    const b = stand('b')
    await clock.advance(1000)
    a.clock.pause()
    await clock.advanceUntil(() => b.led.length > 0)
    expect(() => a.led[0]?.assertHeld()).toThrow(expect.objectContaining({ reason: 'frozen' }))
    expect(a.led[0]?.signal.reason).toBeInstanceOf(LeaseLostError)
    a.clock.resume()
    await clock.advance(2 * LEASE_MS)
    expect(said).toEqual(['a leads', 'b standby', 'b leads', 'a lost'])
    await Promise.all([a.candidacy.stop(), b.candidacy.stop()])
  })

  it('a store that fails for less than a lease costs nothing; for longer, the leadership, and it stands anew', async () => {
    const { clock, said, stand } = world()
    const a = stand('a')
    await clock.settle()
    const renew = a.leases.renewLock
    a.leases.renewLock = () => Promise.reject(new Error('gone'))
    await clock.advance(LEASE_MS * 0.8)
    a.leases.renewLock = renew
    await clock.advance(2 * LEASE_MS)
    expect(said).toEqual(['a leads'])
    // An answer that never comes is no better.
    a.leases.renewLock = () => new Promise(() => undefined)
    await clock.advance(2 * LEASE_MS)
    expect(said.slice(1, 3)).toEqual(['a lost', 'a leads'])
    await a.candidacy.stop()
  })

  it('a lease that somebody took away is noticed at the next renewal', async () => {
    const { clock, said, stand } = world()
    const a = stand('a')
    await clock.settle()
    a.leases.renewLock = () => Promise.resolve(false)
    await clock.advance(LEASE_MS / 3)
    expect(said.slice(0, 2)).toEqual(['a leads', 'a lost'])
    expect(a.led[0]?.signal.reason).toMatchObject({ reason: 'expired' })
    await a.candidacy.stop()
  })

  it('an acquisition that is answered late is not trusted, but given back', async () => {
    const { clock, said, stand, store } = world()
    const held = await store.leases().acquireLockFenced('scheduler:shop', 1000)
    const a = stand('a')
    await clock.settle()
    const acquire = a.leases.acquireLockFenced
    a.leases.acquireLockFenced = async (key, ttlMs) => {
      const lock = await acquire(key, ttlMs)
      clock.freeze(LEASE_MS / 2)
      a.leases.acquireLockFenced = acquire
      return lock
    }
    await store.leases().releaseLock('scheduler:shop', held?.token ?? '')
    await clock.advance(LEASE_MS / 3)
    expect(said).toEqual(['a standby'])
    await clock.advance(LEASE_MS)
    expect(said).toEqual(['a standby', 'a leads'])
    await a.candidacy.stop()
  })

  it('stopped while it asks, it gives back what it gets; resigned, it pauses', async () => {
    const { clock, said, stand, store } = world()
    const a = stand('a')
    await a.candidacy.stop()
    const b = stand('b')
    await clock.settle()
    expect(said).toEqual(['b leads'])
    await b.candidacy.resign('resigned', LEASE_MS)
    const taken = await store.leases().acquireLockFenced('scheduler:shop', 1)
    expect(taken).not.toBeNull()
    await clock.advance(LEASE_MS + 1)
    expect(said).toEqual(['b leads', 'b resigned', 'b leads'])
    await b.candidacy.stop()
  })
})
