/** What is particular to the in-process coordinator and store: options, eviction, twins, outages, leaks. */
import { describe, expect, it } from '@jest/globals'
import { ConfigError, MemoryLog, MemoryStore, type Logger, type Turn } from '@botmesh/core'
import {
  CallFaults,
  FaultyBackend,
  ManualClock,
  MemoryCoordinationHub,
  MemoryCoordinator,
  type FaultPlan,
} from '@botmesh/core/testing'

const LEASE_MS = 1000

async function taken(promise: Promise<Turn | 'duplicate'>): Promise<Turn> {
  const turn = await promise
  if (turn === 'duplicate') throw new Error('duplicate')
  return turn
}

describe('options', () => {
  const hub = new MemoryCoordinationHub()

  it('names the option, the value and what is accepted', () => {
    expect(() => new MemoryCoordinationHub({ maxIdleKeys: 0 })).toThrow(/"maxIdleKeys" is 0; accepted/)
    expect(() => new MemoryCoordinationHub({ maxWaitingPerKey: 0.5 })).toThrow(/"maxWaitingPerKey" is 0.5/)
    expect(() => new MemoryCoordinationHub({ dedupeMs: 'long' as '1d' })).toThrow(/"dedupeMs" is "long"/)
    expect(() => new MemoryCoordinator({ hub, leaseMs: 10 })).toThrow(/"leaseMs" is 10; accepted/)
    expect(() => new MemoryCoordinator({ hub, leaseMs: '15 s' })).toThrow(/"leaseMs" is "15 s"/)
    expect(() => new MemoryCoordinator({ hub, leaseMS: 1 } as never)).toThrow(/did you mean "leaseMs"/)
    expect(() => new MemoryCoordinator({} as never)).toThrow(ConfigError)
    expect(() => new MemoryCoordinator({ hub, replicaId: '' })).toThrow(/"replicaId"/)
    expect(() => new MemoryStore({ prefix: 'x' } as never)).toThrow(/MemoryStore has no option "prefix"/)
  })

  it('a chat key cannot be a leadership, nor empty; a duration must be one', async () => {
    const coordinator = new MemoryCoordinator({ hub })
    await expect(coordinator.turns.take('lead:x')).rejects.toBeInstanceOf(ConfigError)
    await expect(coordinator.turns.take('')).rejects.toBeInstanceOf(ConfigError)
    await expect(coordinator.turns.take('k', { waitMs: -1 })).rejects.toThrow(/"waitMs" is -1/)
    await expect(coordinator.tryLead('')).rejects.toBeInstanceOf(ConfigError)
    expect(coordinator.leaseMs).toBe(15_000)
    expect(coordinator.status).toEqual({ status: 'idle' })
    await coordinator.stop()
  })

  it('C3: the replica id is one per process unless given; incarnations are one per coordinator', () => {
    const [a, b] = [new MemoryCoordinator({ hub }), new MemoryCoordinator({ hub })]
    expect(a.replicaId).toBe(b.replicaId)
    expect(a.incarnation).not.toBe(b.incarnation)
    expect(new MemoryCoordinator({ hub, replicaId: 'r1' }).incarnation).toMatch(/^r1~/)
  })
})

describe('X1: idle keys', () => {
  it('are evicted, least recently used first; fences stay monotonic and previousHolder is null for one made anew', async () => {
    const clock = new ManualClock()
    const hub = new MemoryCoordinationHub({ clock, maxIdleKeys: 2 })
    const coordinator = new MemoryCoordinator({ hub, clock, leaseMs: LEASE_MS })
    const serve = async (key: string): Promise<Turn> => {
      const turn = await taken(coordinator.turns.take(key))
      await turn.release()
      return turn
    }
    const first = await serve('a')
    await serve('b')
    expect((await serve('a')).previousHolder).toBe(coordinator.incarnation)
    await serve('c')
    expect(hub.size).toBe(2)
    expect((await serve('a')).previousHolder).toBe(coordinator.incarnation)
    clock.shiftWall(-3_600_000)
    const anew = await serve('b')
    expect(anew.previousHolder).toBeNull()
    expect(anew.fence).toBeGreaterThan(first.fence)
    await coordinator.stop()
  })

  it('held and wanted keys are never evicted', async () => {
    const clock = new ManualClock()
    const hub = new MemoryCoordinationHub({ clock, maxIdleKeys: 1 })
    const coordinator = new MemoryCoordinator({ hub, clock, leaseMs: LEASE_MS })
    const turns = await Promise.all(['a', 'b', 'c'].map((key) => taken(coordinator.turns.take(key))))
    await (await taken(coordinator.turns.take('d'))).release()
    await (await taken(coordinator.turns.take('e'))).release()
    expect(hub.size).toBe(4)
    turns.forEach((turn) => turn.assertHeld())
    await clock.advance(3 * LEASE_MS)
    turns.forEach((turn) => turn.assertHeld())
    await coordinator.stop()
    expect(hub.size).toBe(1)
  })

  it('scenario 34: a hundred thousand chats that spoke once leave the hub at its bound', async () => {
    const clock = new ManualClock()
    const hub = new MemoryCoordinationHub({ clock, maxIdleKeys: 1000 })
    const coordinator = new MemoryCoordinator({ hub, clock })
    for (let n = 0; n < 100_000; n += 1) await (await taken(coordinator.turns.take(`chat-${n}`))).release()
    expect(hub.size).toBe(1000)
    await coordinator.stop()
  })
})

describe('floods', () => {
  it('scenario 7: a hundred thousand messages in one chat leave the other chats of the hub prompt', async () => {
    const hub = new MemoryCoordinationHub()
    const [flooded, other] = [new MemoryCoordinator({ hub }), new MemoryCoordinator({ hub })]
    const count = 100_000
    let served = 0
    const flood = Array.from({ length: count }, async () => {
      const turn = await taken(flooded.turns.take('flood'))
      served += 1
      // Handlers wait for something now and then: without that, nothing but the flood would run at all.
      if (served % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
      await turn.release()
    })
    let worstMs = 0
    let others = 0
    while (served < count) {
      const since = performance.now()
      await (await taken(other.turns.take('other'))).release()
      others += 1
      worstMs = Math.max(worstMs, performance.now() - since)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await Promise.all(flood)
    // Some milliseconds; generous, for a machine that is busy with other things.
    expect(worstMs).toBeLessThan(1000)
    expect(others).toBeGreaterThan(100)
    await Promise.all([flooded.stop(), other.stop()])
    // Six seconds of work, half of it garbage of a hundred thousand calls that wait at once; more on a busy machine.
  }, 60_000)
})

describe('sessions', () => {
  function recording() {
    const warnings: string[] = []
    const logger: Logger = {
      debug: () => undefined,
      info: () => undefined,
      warn: (_details, text) => void warnings.push(text),
      error: (_details, text) => void warnings.push(text),
    }
    return { warnings, logger }
  }

  it('scenario 12: two processes with one replicaId both work, and a warning says so, once', async () => {
    const clock = new ManualClock()
    const hub = new MemoryCoordinationHub({ clock })
    const { warnings, logger } = recording()
    const twin = (processId: string) =>
      new MemoryCoordinator({ hub, clock, leaseMs: LEASE_MS, replicaId: 'same', processId, logger })
    const [a, b] = [twin('p1'), twin('p2')]
    await a.start()
    await b.start()
    const [mine, others] = await Promise.all([taken(a.turns.take('x')), taken(b.turns.take('y'))])
    await clock.advance(3 * LEASE_MS)
    mine.assertHeld()
    others.assertHeld()
    expect(warnings.filter((text) => text.includes('replicaId')).length).toBe(2)
    await Promise.all([a.stop(), b.stop()])
  })

  it('scenario 11: a restarted replica, and several coordinators of one process, are no twins', async () => {
    const clock = new ManualClock()
    const hub = new MemoryCoordinationHub({ clock })
    const { warnings, logger } = recording()
    const make = (processId: string) =>
      new MemoryCoordinator({ hub, clock, leaseMs: LEASE_MS, replicaId: 'r', processId, logger })
    const old = make('p1')
    await old.start()
    old.crash()
    const [again, beside] = [make('p2'), make('p2')]
    await again.start()
    await beside.start()
    await clock.advance(3 * LEASE_MS)
    expect(warnings).toEqual([])
    await Promise.all([again.stop(), beside.stop()])
  })

  it('scenario 10: an outage longer than the lease ends turns as lost, reports new messages, and leaks nothing', async () => {
    const clock = new ManualClock()
    const hub = new MemoryCoordinationHub({ clock })
    const plan: FaultPlan = {}
    const coordinator = new MemoryCoordinator({
      hub,
      clock,
      leaseMs: LEASE_MS,
      wrap: (backend) => new FaultyBackend(backend, plan),
    })
    const turn = await taken(coordinator.turns.take('chat'))
    const idleTimers = clock.timers
    plan.fault = () => 'not-sent'
    const results = Promise.allSettled(
      Array.from({ length: 50 }, (_, n) => coordinator.turns.take(`chat-${n}`, { waitMs: 2 * LEASE_MS })),
    )
    await clock.advance(2 * LEASE_MS + 10)
    expect(turn.signal.reason).toMatchObject({ code: 'LEASE_LOST', reason: 'frozen' })
    for (const result of await results) {
      expect(result).toMatchObject({ status: 'rejected', reason: { details: { why: 'unreachable' } } })
    }
    expect(coordinator.status.status).toBe('unreachable')
    plan.fault = () => null
    await clock.advance(LEASE_MS)
    await (await taken(coordinator.turns.take('chat'))).release()
    expect(coordinator.status.status).toBe('live')
    expect(clock.timers).toBeLessThanOrEqual(idleTimers)
    await coordinator.stop()
    expect(clock.timers).toBe(0)
  })

  it('two thirds: a grant that comes after a failed renewal is handed over only when the session is renewed', async () => {
    const clock = new ManualClock()
    const hub = new MemoryCoordinationHub({ clock })
    const plan: FaultPlan = { fault: (call) => (call === 'heartbeat' ? 'not-sent' : null) }
    const coordinator = new MemoryCoordinator({
      hub,
      clock,
      leaseMs: LEASE_MS,
      wrap: (backend) => new FaultyBackend(backend, plan),
    })
    await coordinator.start()
    await clock.advance(LEASE_MS * 0.6)
    let turn: Turn | undefined
    void taken(coordinator.turns.take('chat')).then((one) => (turn = one))
    await clock.advance(LEASE_MS * 0.05)
    expect(turn).toBeUndefined()
    plan.fault = () => null
    await clock.advance(LEASE_MS * 0.15)
    expect(turn).toBeDefined()
    turn?.assertHeld()
    await coordinator.stop()
  })

  it('start gives up after startTimeoutMs, says so, and may be tried again', async () => {
    const clock = new ManualClock()
    const hub = new MemoryCoordinationHub({ clock })
    const plan: FaultPlan = { fault: () => 'not-sent' }
    const coordinator = new MemoryCoordinator({
      hub,
      clock,
      startTimeoutMs: '3s',
      wrap: (backend) => new FaultyBackend(backend, plan),
    })
    const started = coordinator.start()
    started.catch(() => undefined)
    await clock.advance(3000)
    await expect(started).rejects.toMatchObject({ details: { why: 'unreachable', waitedMs: 3000 } })
    plan.fault = () => null
    const again = coordinator.start()
    await clock.advance(3000)
    await again
    await coordinator.stop()
  })
})

describe('call faults', () => {
  it('crash at every call in turn: the survivor always gets the chat, and the effect is stored once', async () => {
    let completed = false
    let outcomes: (string | undefined)[] = []
    for (let at = 1; !completed; at += 1) {
      const clock = new ManualClock()
      const store = new MemoryStore({ clock })
      const faults = new CallFaults({ at, what: 'crash', onCrash: () => dying.crash() })
      const wrapped = faults.store(store)
      const dying = wrapped.coordinator({ leaseMs: LEASE_MS })
      expect(dying.sharesBackendWith(wrapped)).toBe(true)
      const survivor = store.coordinator({ leaseMs: LEASE_MS })
      const handle = async (by: MemoryCoordinator): Promise<string> => {
        const turn = await by.turns.take('k', { dedupeId: 'm1', read: {} })
        if (turn === 'duplicate') return 'duplicate'
        return (await turn.commit({ inboundId: 'm1' })).outcome
      }
      let first: string | undefined
      handle(dying).then(
        (outcome) => (first = outcome),
        () => undefined,
      )
      await clock.advance(10)
      let second: string | undefined
      void handle(survivor).then((outcome) => (second = outcome))
      await clock.advanceUntil(() => second !== undefined, 10 * LEASE_MS)
      expect(await store.isCommitted('k', 'm1')).toBe(true)
      completed = !faults.hit
      outcomes = [first, second]
      faults.hit = true
      await Promise.all([dying.stop(), survivor.stop()])
    }
    expect(outcomes).toEqual(['committed', 'duplicate'])
  })

  it('a lost reply at every call in turn: it completes, and the effect is stored once', async () => {
    let completed = false
    for (let at = 1; !completed; at += 1) {
      const clock = new ManualClock()
      const store = new MemoryStore({ clock })
      const faults = new CallFaults({ at, what: 'lose-reply' })
      const coordinator = faults.store(store).coordinator({ leaseMs: LEASE_MS })
      let done = ''
      void taken(coordinator.turns.take('k', { dedupeId: 'm1' }))
        .then((turn) => turn.commit({ inboundId: 'm1' }))
        .then((result) => (done = result.outcome))
      await clock.advanceUntil(() => done !== '', 10 * LEASE_MS)
      expect(done).toBe('committed')
      completed = !faults.hit
      faults.hit = true
      await coordinator.stop()
    }
  })
})

describe('the message log', () => {
  it('goes on after the ids of the process before it, and forgets what has expired', async () => {
    const clock = new ManualClock()
    const log = new MemoryStore({ clock }).log
    const last = await log.append('visitor', 'before the restart')
    await clock.advance(1)
    const restarted = new MemoryStore({ clock }).log
    await restarted.append('visitor', 'after it')
    expect((await restarted.read('visitor', last)).map((entry) => entry.payload)).toEqual(['after it'])
  })

  it('keeps no channel for ever: those that expired are swept as others come', async () => {
    const clock = new ManualClock()
    const log = new MemoryLog(clock)
    for (let n = 0; n < 200; n++) await log.append(`old ${n}`, 'x', { ttlMs: 1000 })
    await clock.advance(1000)
    for (let n = 0; n < 200; n++) await log.append(`new ${n}`, 'x')
    expect((log as unknown as { channels: Map<string, unknown> }).channels.size).toBeLessThanOrEqual(256)
    expect(await log.read('new 0', null)).toHaveLength(1)
  })
})
