/**
 * Drives the same random operations through two coordination backends in lockstep and compares every outcome: the
 * in-process hub, which runs the turn machine itself, and the one under test. Fences are compared by order, never by
 * value; remaining lifetimes only by whether there is any.
 */
import { ticketId, type CoordinationBackend, type HeartbeatRequest } from '../runtime/coordination-backend.js'
import { systemClock } from '../runtime/system-clock.js'
import { DifferentialSide, outcomeOf, outcomeOfCommit } from './differential-side.js'
import { SeededRandom } from './seeded-random.js'

export interface DifferentialOptions {
  seed: number
  steps: number
  /** Not opened yet; this function opens and closes both. */
  reference: CoordinationBackend
  subject: CoordinationBackend
  /** Lease of the sessions; a lapse of some takes a bit more than this. Default 1 s. */
  leaseMs?: number
  /** Lets time pass on both. */
  pass(ms: number): Promise<void>
  /** How long a push may take before it counts as a difference. Default 1 s. */
  pushMs?: number
  /** How often sessions are made to lapse. Default 2. */
  lapses?: number
}

interface Standing {
  session: string
  key: string
  ticket: string
}

class Differential {
  private readonly random: SeededRandom
  private readonly sides: [DifferentialSide, DifferentialSide]
  private readonly leaseMs: number
  private readonly sessions: string[] = []
  /** Tickets that were taken, whatever became of them. */
  private readonly tickets: Standing[] = []
  private names = 0
  private readonly commits = new Map<string, number>()
  private readonly ended = new Set<string>()
  readonly differences: string[] = []

  constructor(private readonly options: DifferentialOptions) {
    this.random = new SeededRandom(options.seed)
    this.leaseMs = options.leaseMs ?? 1000
    this.sides = [
      new DifferentialSide('reference', options.reference, this.leaseMs, new SeededRandom(1)),
      new DifferentialSide('subject', options.subject, this.leaseMs, new SeededRandom(1)),
    ]
  }

  async run(): Promise<string[]> {
    const { steps, lapses = 2 } = this.options
    for (const side of this.sides) await side.open()
    try {
      for (let n = 0; n < 3; n += 1) await this.open()
      const every = Math.max(1, Math.floor(steps / (lapses + 1)))
      for (let n = 1; n <= steps && this.differences.length === 0; n += 1) {
        await this.step()
        // Real time passes too: keep alive whoever is not meant to lapse.
        if (n % 10 === 0) for (const session of this.sessions) await this.heartbeat(session)
        if (n % every === 0 && n < steps) await this.lapse()
      }
    } finally {
      for (const side of this.sides) await side.backend.close()
    }
    return this.differences
  }

  private async step(): Promise<void> {
    const weights = [12, 6, 5, 2, 3, 3, 1, 1]
    const steps = [
      () => this.take(),
      () => this.release(),
      () => this.commit(),
      () => this.withdraw(),
      () => this.nudge(),
      () => this.heartbeat(this.random.pick(this.sessions)),
      () => this.open(),
      () => this.close(),
    ]
    let at = this.random.int(weights.reduce((sum, one) => sum + one, 0))
    await steps[weights.findIndex((weight) => (at -= weight) < 0)]?.()
  }

  private async both<T>(what: string, call: (side: DifferentialSide) => Promise<T>): Promise<T[]> {
    const answers: T[] = []
    for (const side of this.sides) answers.push(await call(side))
    const [reference, subject] = answers.map((answer) => JSON.stringify(answer))
    if (reference !== subject) this.differences.push(`${what}: reference ${reference}, subject ${subject}`)
    await this.compareGrants(what)
    return answers
  }

  /** Pushes take a moment where there is a network. */
  private async compareGrants(what: string): Promise<void> {
    const [reference, subject] = this.sides
    const view = (side: DifferentialSide): string =>
      JSON.stringify([side.view(), [...side.duplicates].sort()])
    for (
      let tries = 0;
      tries < (this.options.pushMs ?? 1000) / 5 && view(reference) !== view(subject);
      tries += 1
    ) {
      await new Promise<void>((resolve) => systemClock.setTimeout(resolve, 5))
    }
    if (view(reference) === view(subject)) return
    this.differences.push(`grants after ${what}: reference ${view(reference)}, subject ${view(subject)}`)
  }

  private async open(): Promise<void> {
    const session = `s~${(this.names += 1)}`
    this.sessions.push(session)
    await this.both(`open ${session}`, async (side) => {
      const request = { session, replicaId: session, processId: session, leaseMs: this.leaseMs, floor: 0 }
      await side.backend.openSession(request)
    })
  }

  private async close(): Promise<void> {
    if (this.sessions.length < 3) return
    const session = this.random.pick(this.sessions)
    this.sessions.splice(this.sessions.indexOf(session), 1)
    await this.both(`close ${session}`, (side) => side.backend.closeSession(session))
  }

  private async take(): Promise<void> {
    // A copy of a take that has not ended; one that lands later is a ghost, and backends may know it or not.
    const resent = this.random.next() < 0.15 ? this.standing() : undefined
    const known = resent && !this.ended.has(resent.ticket) ? resent : undefined
    const session = known?.session ?? this.random.pick(this.sessions)
    const key = known?.key ?? this.random.pick(['k/1', 'k/2', 'k/3'])
    const ticket = known?.ticket ?? ticketId(session, (this.names += 1))
    const dedupeId = this.random.next() < 0.5 ? `m${this.random.int(10)}` : undefined
    const onlyIfFree = known === undefined && this.random.next() < 0.1
    const request = { session, key, ticket, ...(dedupeId === undefined ? {} : { dedupeId }), onlyIfFree }
    const [reply] = await this.both(`take ${ticket} of ${key}`, async (side) => {
      const answer = await side.backend.take(request)
      if (answer.outcome === 'granted') side.learn(session, answer.grant)
      return outcomeOf(answer)
    })
    const stands = reply?.startsWith('granted') || (reply?.startsWith('queued') && !onlyIfFree)
    if (!known && stands) this.tickets.push({ session, key, ticket })
  }

  private async release(): Promise<void> {
    const one = this.held()
    if (!one) return
    this.ended.add(one.ticket)
    await this.both(`release ${one.ticket}`, (side) => {
      const fence = side.grants.get(one.ticket)?.fence ?? 0
      return side.backend.release({ ...one, fence })
    })
    if (this.random.next() < 0.8) this.drop(one.ticket)
  }

  private async commit(): Promise<void> {
    const one = this.held()
    if (!one) return
    const n = (this.commits.get(one.ticket) ?? 0) + 1
    const release = this.random.next() < 0.7
    const inboundId = `m${this.random.int(10)}`
    const copies = this.random.next() < 0.3 ? 2 : 1
    this.commits.set(one.ticket, n)
    if (release) this.ended.add(one.ticket)
    for (let copy = 0; copy < copies; copy += 1) {
      await this.both(`commit ${one.ticket}#${n} of ${inboundId}, release ${release}`, async (side) => {
        const fence = side.grants.get(one.ticket)?.fence ?? 0
        const commitId = `${one.ticket}#${n}`
        const effects = { inboundId }
        return outcomeOfCommit(
          await side.backend.commit({ ...one, fence, commitId, effects, release, leaseMs: this.leaseMs }),
        )
      })
    }
  }

  private async withdraw(): Promise<void> {
    const one = this.standing()
    if (!one) return
    await this.both(`withdraw ${one.ticket}`, (side) => side.backend.withdraw(one))
    this.drop(one.ticket)
  }

  private async nudge(): Promise<void> {
    const session = this.random.pick(this.sessions)
    const waiting = this.waiting(session)
    await this.both(`nudge ${session}`, async (side) => {
      const replies = await side.backend.nudge(session, waiting)
      replies.forEach((reply) => reply.outcome === 'granted' && side.learn(session, reply.grant))
      return replies.map(outcomeOf)
    })
  }

  private async heartbeat(session: string): Promise<void> {
    const waiting = this.waiting(session)
    await this.both(`heartbeat ${session}`, async (side) => {
      const held = this.tickets.flatMap((one) => {
        const fence = side.grants.get(one.ticket)?.fence
        return one.session === session && fence !== undefined
          ? [{ key: one.key, fence, ticket: one.ticket }]
          : []
      })
      const request: HeartbeatRequest = {
        session,
        replicaId: session,
        processId: session,
        leaseMs: this.leaseMs,
        floor: 0,
        held,
        waiting,
        repairs: [],
      }
      const reply = await side.backend.heartbeat(request)
      if (reply.outcome === 'session-lost') return reply.outcome
      for (const grant of reply.unknown) side.learn(session, grant)
      const missing = reply.missing.map((one) => one.ticket).sort()
      return { missing, waiting: reply.waiting.map(outcomeOf) }
    })
  }

  /** Some sessions are renewed, the others not, until those have lapsed. */
  private async lapse(): Promise<void> {
    const survivors = this.sessions.filter(() => this.random.next() < 0.6)
    if (survivors.length === 0) survivors.push(this.random.pick(this.sessions))
    for (let half = 0; half < 2; half += 1) {
      await this.options.pass(this.leaseMs * 0.6)
      for (const session of survivors) await this.heartbeat(session)
    }
    // The dead are asked too, once: both must call them dead.
    for (const session of this.sessions) if (!survivors.includes(session)) await this.heartbeat(session)
    this.sessions.splice(0, Infinity, ...survivors)
    await this.open()
  }

  private waiting(session: string): { key: string; ticket: string }[] {
    const reference = this.sides[0]
    return this.tickets
      .filter((one) => one.session === session && !reference.grants.has(one.ticket))
      .map(({ key, ticket }) => ({ key, ticket }))
  }

  private held(): Standing | undefined {
    const held = this.tickets.filter((one) => this.sides[0].grants.has(one.ticket))
    return held.length > 0 ? this.random.pick(held) : undefined
  }

  private standing(): Standing | undefined {
    const standing = this.tickets.filter((one) => this.sessions.includes(one.session))
    return standing.length > 0 ? this.random.pick(standing.slice(-10)) : undefined
  }

  private drop(ticket: string): void {
    const place = this.tickets.findIndex((one) => one.ticket === ticket)
    if (place >= 0) this.tickets.splice(place, 1)
  }
}

/** @returns what differed first, with the operation; empty if nothing did. Give the seed in the test's name. */
export function differential(options: DifferentialOptions): Promise<string[]> {
  return new Differential(options).run()
}
