/**
 * The turn machine against a naive model, over random events: every grant is compared with what the model expects,
 * copies of earlier events change nothing, and after each event nobody waits behind nobody.
 */
import { describe, expect, it } from '@jest/globals'
import { SeededRandom, seedOfRun } from '@botmesh/core/testing'
import {
  closeSession,
  commit,
  compareHeld,
  lapseDead,
  nudge,
  openSession,
  release,
  renewSession,
  take,
  withdraw,
  type TurnEffect,
} from '../../src/kernel/turn-machine.js'
import { emptyTurnMachine, type BreakableRule, type TurnMachineState } from '../../src/kernel/turn-state.js'
import type { Grant } from '../../src/kernel/turn-protocol.js'

const LEASE_MS = 1000
const KEYS = ['x', 'y']

interface ModelTicket {
  session: string
  ticket: string
  dedupeId: string | undefined
}

/** What a reader of the documentation would expect, written without any of the machine's structures. */
class Model {
  readonly violations: string[] = []
  private readonly line = new Map<string, ModelTicket[]>()
  private readonly holder = new Map<string, { session: string; fence: number }>()
  private readonly lastFence = new Map<string, number>()
  private readonly previous = new Map<string, string>()
  private readonly committed = new Set<string>()
  readonly alive = new Map<string, number>()

  live(session: string, now: number): boolean {
    return (this.alive.get(session) ?? 0) > now
  }

  stand(key: string, ticket: ModelTicket): void {
    this.line.set(key, [...(this.line.get(key) ?? []), ticket])
  }

  leave(key: string, ticket: string): void {
    this.line.set(
      key,
      (this.line.get(key) ?? []).filter((one) => one.ticket !== ticket),
    )
  }

  end(key: string, fence: number): void {
    if (this.holder.get(key)?.fence === fence) this.holder.delete(key)
  }

  commitId(key: string, id: string): void {
    this.committed.add(`${key} ${id}`)
  }

  forget(key: string): void {
    this.previous.delete(key)
    for (const id of this.committed) if (id.startsWith(`${key} `)) this.committed.delete(id)
  }

  granted(session: string, grant: Grant, now: number): void {
    const { key } = grant
    const holder = this.holder.get(key)
    if (holder && holder.fence === grant.fence) return
    if (holder && this.live(holder.session, now)) this.violations.push(`I1: ${key} has a live holder already`)
    if (!this.live(session, now)) this.violations.push(`I4: ${key} was granted to a dead session`)
    const expected = (this.line.get(key) ?? []).find(
      (one) =>
        this.live(one.session, now) &&
        !(one.dedupeId !== undefined && this.committed.has(`${key} ${one.dedupeId}`)),
    )
    if (expected?.ticket !== grant.ticket) {
      this.violations.push(`I3: ${grant.ticket} was granted, ${String(expected?.ticket)} is first`)
    }
    if (grant.fence <= (this.lastFence.get(key) ?? 0))
      this.violations.push(`I6: fence of ${key} did not grow`)
    if (!Number.isSafeInteger(grant.fence)) this.violations.push('a fence is a safe integer')
    if (grant.previousHolder !== (this.previous.get(key) ?? null))
      this.violations.push(`I8: previous of ${key}`)
    this.leave(key, grant.ticket)
    this.holder.set(key, { session, fence: grant.fence })
    this.previous.set(key, session)
    this.lastFence.set(key, grant.fence)
  }
}

class Walk {
  readonly model = new Model()
  readonly state: TurnMachineState
  private readonly random: SeededRandom
  private now = 1_700_000_000_000
  private names = 0
  private readonly sessions: string[] = []
  private readonly grants: { session: string; grant: Grant }[] = []
  private readonly past: (() => void)[] = []
  private readonly idle = new Set<string>()

  constructor(seed: number, broken: BreakableRule[] = []) {
    this.random = new SeededRandom(seed)
    this.state = emptyTurnMachine({ broken, idle: this.idle })
  }

  run(steps: number): string[] {
    for (let n = 0; n < 3; n += 1) this.open()
    for (let n = 0; n < steps && this.model.violations.length === 0; n += 1) {
      this.step()
      this.checkNobodyWaitsForNobody()
    }
    return this.model.violations
  }

  private step(): void {
    const weights = [12, 6, 4, 2, 4, 2, 1, 1, 3, 1]
    const steps = [
      () => this.take(),
      () => this.release(),
      () => this.commit(),
      () => this.withdraw(),
      () => this.renew(),
      () => this.nudge(),
      () => this.open(),
      () => this.close(),
      () => void (this.now += this.random.int(400)),
      () => this.forget(),
    ]
    let at = this.random.int(weights.reduce((sum, one) => sum + one, 0))
    const chosen = weights.findIndex((weight) => (at -= weight) < 0)
    steps[chosen]?.()
    // I9: a copy of something that happened before, however late.
    if (this.random.next() < 0.2 && this.past.length > 0) this.random.pick(this.past)()
  }

  private tell(effects: TurnEffect[]): void {
    for (const effect of effects) {
      if (effect.type === 'granted') this.noteGrant(effect.session, effect.grant)
      else this.model.leave(effect.key, effect.ticket)
    }
  }

  private noteGrant(session: string, grant: Grant): void {
    this.model.granted(session, grant, this.now)
    this.grants.push({ session, grant })
  }

  private open(): void {
    const session = `s${(this.names += 1)}`
    const event = { session, replicaId: 'r', processId: 'p', leaseMs: LEASE_MS, floor: 0 }
    this.model.alive.set(session, this.now + LEASE_MS)
    this.tell(openSession(this.state, event, this.now).effects)
    this.sessions.push(session)
  }

  private close(): void {
    const session = this.random.pick(this.sessions)
    this.model.alive.delete(session)
    this.tell(closeSession(this.state, session, this.now).effects)
  }

  private renew(): void {
    const session = this.random.pick(this.sessions)
    const wasAlive = this.model.live(session, this.now)
    const { reply, effects } = renewSession(this.state, { session, processId: 'p', floor: 0 }, this.now)
    if (reply.alive !== wasAlive) this.model.violations.push('I2: a renewal neither revives nor kills')
    if (wasAlive) this.model.alive.set(session, this.now + LEASE_MS)
    this.tell(effects)
    const held = compareHeld(this.state, session, [])
    if (!wasAlive && held.unknown.length > 0) this.model.violations.push('I2: the dead hold nothing')
  }

  private take(): void {
    const session = this.random.pick(this.sessions)
    const key = this.random.pick(KEYS)
    const ticket = `${session}:${(this.names += 1)}`
    const dedupeId = this.random.next() < 0.5 ? `m${this.random.int(8)}` : undefined
    const event = { session, key, ticket, ...(dedupeId === undefined ? {} : { dedupeId }) }
    const { reply, effects } = take(this.state, event, this.now)
    if (reply.outcome === 'granted' || reply.outcome === 'queued')
      this.model.stand(key, { session, ticket, dedupeId })
    this.tell(effects)
    if (reply.outcome === 'granted') this.noteGrant(session, reply.grant)
    if (reply.outcome === 'session-lost' && this.model.live(session, this.now)) {
      this.model.violations.push('I2: a live session was called lost')
    }
    this.past.push(() => {
      const ended =
        this.state.keys.get(key)?.holder?.grant.ticket !== ticket &&
        !this.state.keys.get(key)?.queue.has(ticket)
      const copy = take(this.state, event, this.now)
      // A copy that lands after its ticket has ended is a ticket of its own: a ghost, for reconciliation to find.
      if (ended && (copy.reply.outcome === 'queued' || copy.reply.outcome === 'granted')) {
        this.model.stand(key, { session, ticket, dedupeId })
      }
      this.tell(copy.effects)
      if (copy.reply.outcome === 'granted') this.noteGrant(session, copy.reply.grant)
    })
  }

  private release(): void {
    const one = this.grants.length > 0 ? this.random.pick(this.grants) : undefined
    if (!one) return
    const { session, grant } = one
    const act = (): void => {
      const { reply, effects } = release(
        this.state,
        { session, key: grant.key, fence: grant.fence },
        this.now,
      )
      if (reply === 'released') this.model.end(grant.key, grant.fence)
      this.tell(effects)
    }
    act()
    this.past.push(act)
  }

  private commit(): void {
    const one = this.grants.length > 0 ? this.random.pick(this.grants) : undefined
    if (!one) return
    const { session, grant } = one
    const inboundId = `m${this.random.int(8)}`
    const commitId = `${grant.ticket}#${(this.names += 1)}`
    const event = {
      session,
      key: grant.key,
      ticket: grant.ticket,
      fence: grant.fence,
      commitId,
      inboundId,
      release: this.random.next() < 0.7,
    }
    let stored = 0
    const act = (): void => {
      const current = this.state.keys.get(grant.key)?.holder?.grant.fence === grant.fence
      const may = current && this.model.live(session, this.now)
      const { reply, effects } = commit(this.state, event, this.now, () => {
        stored += 1
        if (!may) this.model.violations.push('I5: an old or dead holder wrote')
        this.model.commitId(grant.key, inboundId)
        if (event.release) this.model.end(grant.key, grant.fence)
        return { outcome: 'committed', revision: null }
      })
      if (may && reply.outcome === 'refused') this.model.violations.push('the holder was refused')
      this.tell(effects)
    }
    act()
    this.past.push(() => {
      // Its receipt may be gone, overwritten by a later commit of that ticket; a client never resends such a one.
      if (this.state.keys.get(grant.key)?.receipts?.get(grant.ticket)?.commitId !== commitId) return
      const before = stored
      act()
      if (stored !== before) this.model.violations.push('I9: a copy of a commit was stored again')
    })
  }

  private withdraw(): void {
    const session = this.random.pick(this.sessions)
    const key = this.random.pick(KEYS)
    const queue = this.state.keys.get(key)?.queue
    const tickets = queue ? [...queue].filter((one) => one.session === session).map((one) => one.ticket) : []
    const holder = this.state.keys.get(key)?.holder
    if (holder?.session === session) tickets.push(holder.grant.ticket)
    if (tickets.length === 0) return
    const ticket = this.random.pick(tickets)
    if (holder?.grant.ticket === ticket) this.model.end(key, holder.grant.fence)
    this.model.leave(key, ticket)
    this.tell(withdraw(this.state, { session, key, ticket }, this.now).effects)
  }

  private nudge(): void {
    const session = this.random.pick(this.sessions)
    const waiting = KEYS.flatMap((key) =>
      [...(this.state.keys.get(key)?.queue ?? [])]
        .filter((one) => one.session === session)
        .map((one) => ({ key, ticket: one.ticket })),
    )
    const { effects } = nudge(this.state, session, waiting, this.now)
    this.tell(effects)
    this.tell(lapseDead(this.state, this.now))
  }

  /** An idle key is evicted: its history goes, its fences go on (X1). */
  private forget(): void {
    for (const key of this.idle) {
      this.state.keys.delete(key)
      this.model.forget(key)
    }
    this.idle.clear()
  }

  private checkNobodyWaitsForNobody(): void {
    for (const key of KEYS) {
      const known = this.state.keys.get(key)
      if (!known) continue
      const waits = [...known.queue].some((one) => this.model.live(one.session, this.now))
      if (waits && known.holder === null) this.model.violations.push(`I4: ${key} is free and somebody waits`)
      if (this.idle.has(key) !== (known.holder === null && known.queue.size === 0)) {
        this.model.violations.push(`X1: ${key} is idle or it is not`)
      }
    }
  }
}

describe('turn machine', () => {
  const first = seedOfRun()
  for (let round = 0; round < 10; round += 1) {
    const from = first + round * 20
    it(`I1–I9: agrees with the model over random events (SEED=${from}, 20 walks)`, () => {
      for (let seed = from; seed < from + 20; seed += 1) {
        expect({ seed, violations: new Walk(seed).run(400) }).toEqual({ seed, violations: [] })
      }
    })
  }

  const variants: BreakableRule[] = ['fence-check', 'dead-tickets', 'dead-holder', 'dedupe', 'fence-floor']
  for (const broken of variants) {
    it(`the walks notice when the rule "${broken}" is switched off`, () => {
      const noticed = Array.from({ length: 60 }, (_, n) => new Walk(n + 1, [broken]).run(400)).filter(
        (violations) => violations.length > 0,
      )
      expect(noticed.length).toBeGreaterThan(0)
    })
  }

  it('L4, Z5: fences grow over a backend that lost everything and a clock that stepped back', () => {
    const before = emptyTurnMachine()
    const now = 1_700_000_000_000
    const event = { session: 's1', replicaId: 'r', processId: 'p', leaseMs: LEASE_MS, floor: 0 }
    openSession(before, event, now)
    const granted = take(before, { session: 's1', key: 'x', ticket: 's1:1' }, now)
    if (granted.reply.outcome !== 'granted') throw new Error('not granted')
    const after = emptyTurnMachine()
    const floor = granted.reply.grant.fence
    openSession(after, { ...event, session: 's2', floor }, now - 3_600_000)
    const second = take(after, { session: 's2', key: 'x', ticket: 's2:1' }, now - 3_600_000)
    expect(second.reply).toMatchObject({ outcome: 'granted', grant: { fence: floor + 1 } })
  })

  it('scenario 7: a line of 100,000 tickets is served and withdrawn from in linear time', () => {
    const state = emptyTurnMachine()
    const now = 1_700_000_000_000
    openSession(state, { session: 's', replicaId: 'r', processId: 'p', leaseMs: LEASE_MS, floor: 0 }, now)
    const count = 100_000
    for (let n = 0; n < count; n += 1) take(state, { session: 's', key: 'x', ticket: `s:${n}` }, now)
    for (let n = 1; n < count; n += 2) withdraw(state, { session: 's', key: 'x', ticket: `s:${n}` }, now)
    let served = 0
    for (let holder = state.keys.get('x')?.holder; holder; holder = state.keys.get('x')?.holder) {
      served += 1
      release(state, { session: 's', key: 'x', fence: holder.grant.fence }, now)
    }
    expect(served).toBe(count / 2)
  })

  it('scenario 35: a full line answers overflow and takes nothing in', () => {
    const state = emptyTurnMachine({ limits: { maxWaitingPerKey: 2 } })
    const now = 1_700_000_000_000
    openSession(state, { session: 's', replicaId: 'r', processId: 'p', leaseMs: LEASE_MS, floor: 0 }, now)
    const outcomes = [1, 2, 3, 4].map(
      (n) => take(state, { session: 's', key: 'x', ticket: `s:${n}` }, now).reply.outcome,
    )
    expect(outcomes).toEqual(['granted', 'queued', 'queued', 'overflow'])
    expect(take(state, { session: 's', key: 'x', ticket: 's:3' }, now).reply.outcome).toBe('queued')
  })
})
