/** Turns of in-process coordinators on one hub, on a clock that the test moves. */
import { afterEach, describe, expect, it } from '@jest/globals'
import { CoordinationUnavailableError, LeaseLostError, type Coordinator, type Turn } from '@botmesh/core'
import { ManualClock, MemoryCoordinationHub, MemoryCoordinator } from '@botmesh/core/testing'

const LEASE_MS = 3000

function setUp(count = 2) {
  const clock = new ManualClock()
  const hub = new MemoryCoordinationHub({ clock })
  const replicas = Array.from(
    { length: count },
    () => new MemoryCoordinator({ hub, leaseMs: LEASE_MS, clock }),
  )
  started.push(...replicas)
  return { clock, hub, replicas: replicas as [MemoryCoordinator, MemoryCoordinator, ...MemoryCoordinator[]] }
}

const started: Coordinator[] = []
afterEach(async () => {
  await Promise.all(started.splice(0).map((one) => one.stop()))
})

async function taken(promise: Promise<Turn | 'duplicate'>): Promise<Turn> {
  const turn = await promise
  if (turn === 'duplicate') throw new Error('duplicate')
  return turn
}

describe('turns on the in-process hub', () => {
  it('T7: a turn under which nothing was done leaves the holder before it on record', async () => {
    const { replicas } = setUp(3)
    const [a, b, c] = replicas
    const serve = async (who: MemoryCoordinator | undefined, unused = false) => {
      const turn = await taken((who as MemoryCoordinator).turns.take('chat'))
      await turn.release({ unused })
      return turn.previousHolder
    }
    expect(await serve(a)).toBeNull()
    expect(await serve(b, true)).toBe(a.incarnation)
    expect(await serve(c)).toBe(a.incarnation)
    expect(await serve(a)).toBe(c?.incarnation)
  })

  it('T1: grants tickets in the order taken, one holder at a time, whatever the replica', async () => {
    const { replicas } = setUp()
    const [a, b] = replicas
    const served: string[] = []
    let holders = 0
    const serve = async (name: string, who: MemoryCoordinator) => {
      const turn = await taken(who.turns.take('chat'))
      holders += 1
      expect(holders).toBe(1)
      await Promise.resolve()
      served.push(name)
      holders -= 1
      await turn.release()
    }
    await a.start()
    await b.start()
    await Promise.all([
      serve('a1', a),
      serve('b1', b),
      serve('a2', a),
      serve('b2', b),
      serve('b3', b),
      serve('a3', a),
    ])
    // Within a replica in the order of the calls; the first call of each replica came first.
    expect(served[0]).toBe('a1')
    expect(served.filter((one) => one.startsWith('a'))).toEqual(['a1', 'a2', 'a3'])
    expect(served.filter((one) => one.startsWith('b'))).toEqual(['b1', 'b2', 'b3'])
  })

  it('T7, L4: says who held the chat before, and fences grow', async () => {
    const { replicas } = setUp()
    const [a, b] = replicas
    const first = await taken(a.turns.take('chat'))
    expect(first.previousHolder).toBeNull()
    await first.release()
    const second = await taken(b.turns.take('chat'))
    expect(second.previousHolder).toBe(a.incarnation)
    expect(second.fence).toBeGreaterThan(first.fence)
    await second.release()
    const third = await taken(b.turns.take('chat'))
    expect(third.previousHolder).toBe(b.incarnation)
  })

  it('scenario 3: a crashed holder blocks its chat for one lease, no longer', async () => {
    const { clock, replicas } = setUp()
    const [a, b] = replicas
    await taken(a.turns.take('chat'))
    let turn: Turn | undefined
    void taken(b.turns.take('chat')).then((one) => (turn = one))
    await clock.advance(10)
    a.crash()
    const other = await taken(b.turns.take('other'))
    await other.release()
    const waited = await clock.advanceUntil(() => turn !== undefined)
    expect(waited).toBeGreaterThan(LEASE_MS * 0.9 - 10)
    expect(waited).toBeLessThanOrEqual(LEASE_MS * 1.05)
    expect(turn?.previousHolder).toBe(a.incarnation)
  })

  it('scenario 4, T8: tickets of a dead replica are skipped', async () => {
    const { clock, replicas } = setUp(3)
    const [a, b, c] = replicas as unknown as [MemoryCoordinator, MemoryCoordinator, MemoryCoordinator]
    const held = await taken(a.turns.take('chat'))
    const dead = b.turns.take('chat')
    dead.catch(() => undefined)
    await clock.settle()
    let turn: Turn | undefined
    void taken(c.turns.take('chat')).then((one) => (turn = one))
    await clock.settle()
    b.crash()
    await expect(dead).rejects.toBeInstanceOf(CoordinationUnavailableError)
    await clock.advance(LEASE_MS + 1)
    await held.release()
    await clock.settle()
    expect(turn?.fence).toBeGreaterThan(held.fence)
  })

  it('scenario 2: a handler that awaits for three leases keeps its turn; one that blocks for a lease loses it', async () => {
    const { clock, replicas } = setUp()
    const [a] = replicas
    const losses: string[] = []
    a.onLost(({ key, reason }) => losses.push(`${key} ${reason}`))
    const turn = await taken(a.turns.take('chat'))
    await clock.advance(3 * LEASE_MS)
    turn.assertHeld()
    const incarnation = a.incarnation
    clock.freeze(LEASE_MS)
    expect(() => turn.assertHeld()).toThrow(LeaseLostError)
    expect(turn.signal.aborted).toBe(true)
    expect(turn.signal.reason).toMatchObject({ reason: 'frozen', key: 'chat' })
    expect(losses).toEqual(['chat frozen'])
    await clock.settle()
    expect(a.incarnation).not.toBe(incarnation)
    const next = await taken(a.turns.take('chat'))
    expect(next.previousHolder).toBe(incarnation)
    expect(next.fence).toBeGreaterThan(turn.fence)
  })

  it('T6, scenario 6: a wait longer than waitMs rejects and leaves no ticket; a long one still runs', async () => {
    const { clock, replicas } = setUp()
    const [a, b] = replicas
    const held = await taken(a.turns.take('chat'))
    const short = b.turns.take('chat', { waitMs: '1s' })
    short.catch(() => undefined)
    let turn: Turn | undefined
    void taken(b.turns.take('chat', { waitMs: '15m' })).then((one) => (turn = one))
    await clock.advance(1000)
    await expect(short).rejects.toMatchObject({ details: { why: 'timeout', key: 'chat' } })
    await clock.advance(600_000)
    expect(turn).toBeUndefined()
    await held.release()
    await clock.settle()
    expect(turn).toBeDefined()
  })

  it('scenario 9: a hub that restarts empty ends all turns; replicas come back and fences are higher', async () => {
    const { clock, hub, replicas } = setUp()
    const [a, b] = replicas
    const turn = await taken(a.turns.take('chat'))
    let leading = 0
    const follows: string[] = []
    b.elections.campaign('job', {
      onLead: ({ fence }) => (leading = fence),
      onFollow: (why) => follows.push(why),
    })
    await clock.settle()
    const firstLead = leading
    expect(firstLead).toBeGreaterThan(0)
    hub.wipe()
    clock.shiftWall(-10 * 3_600_000)
    await clock.advance(LEASE_MS / 3 + 1)
    expect(turn.signal.reason).toMatchObject({ reason: 'expired' })
    expect(follows).toEqual(['lost'])
    await clock.settle()
    expect(leading).toBeGreaterThan(firstLead)
    const again = await taken(b.turns.take('chat'))
    expect(again.fence).toBeGreaterThan(0)
    const back = await taken(a.turns.take('other'))
    expect(back.fence).toBeGreaterThan(turn.fence)
  })

  it('T6: gives up with the reason of the caller’s signal', async () => {
    const { clock, replicas } = setUp()
    const [a, b] = replicas
    const held = await taken(a.turns.take('chat'))
    const giveUp = new AbortController()
    const waiting = b.turns.take('chat', { signal: giveUp.signal })
    waiting.catch(() => undefined)
    await clock.settle()
    giveUp.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await held.release()
    const next = await taken(a.turns.take('chat'))
    expect(next.previousHolder).toBe(a.incarnation)
  })
})
