/**
 * Tickets that stand in the backend's line. While pushes arrive they cost nothing but a place in each heartbeat, and
 * one timer per *foreign session* that holds something they wait for: it fires when that session must have lapsed.
 * While pushes do not arrive they are polled, all in one call, from 5 ms backing off to `maxPollMs` (Z1).
 */
import type { Clock, Timer } from '../contracts/clock.js'
import type { BackendContext, CoordinationBackend, NudgeReply } from './coordination-backend.js'
import type { SessionKeeper } from './session-keeper.js'
import type { Ticket } from './ticket.js'

const FIRST_POLL_MS = 5
/** Tickets that one heartbeat asks about: grants are pushed, and lost pushes are found by the fences it compares. */
const MOST_A_BEAT = 1500
/** A little after the expected end, so that the backend's clock has passed it too. */
const AFTER_DEATH_MS = 3

interface Foreign {
  readonly tickets: Set<Ticket>
  /** Monotonic instant at which the session lapses unless renewed. */
  diesAt: number
  timer: Timer | null
  firesAt: number
}

export interface WaitingRoomOptions {
  backend: CoordinationBackend
  context: BackendContext
  keeper: () => SessionKeeper
  maxPollMs: number
  /** What became of one of them. */
  nudged: (ticket: Ticket, reply: NudgeReply) => void
}

export class WaitingRoom {
  private readonly waiting = new Set<Ticket>()
  private readonly foreign = new Map<string, Foreign>()
  private pushLive = false
  private pollTimer: Timer | null = null
  private pollMs = FIRST_POLL_MS

  private readonly clock: Clock
  /** Pause before a death is looked at again, if the answer to the first look was lost. */
  private readonly lookAgainMs: number

  constructor(private readonly options: WaitingRoomOptions) {
    this.clock = options.context.clock
    this.lookAgainMs = options.context.leaseMs / 6
  }

  /**
   * Whom the next heartbeat asks about: all, or, where very many wait, some in turns, so that it stays one call (Z2).
   * Of those behind one foreign session one is always among them: its answer says that the session still lives.
   */
  nextInTurn(): Ticket[] {
    if (this.waiting.size <= MOST_A_BEAT) return [...this.waiting]
    const chosen = new Set<Ticket>()
    for (const { tickets } of this.foreign.values()) {
      const [one] = tickets
      if (one) chosen.add(one)
    }
    for (const ticket of this.waiting) {
      if (chosen.size >= MOST_A_BEAT) break
      chosen.add(ticket)
    }
    for (const ticket of chosen) {
      // To the end of the line of those who are asked about.
      this.waiting.delete(ticket)
      this.waiting.add(ticket)
    }
    return [...chosen]
  }

  /** `ticket` waits behind `holder`, whose session has `leftMs` to live; own or unknown holders need no timer. */
  behind(ticket: Ticket, holder: string | null, leftMs: number): void {
    const entering = !this.waiting.has(ticket)
    if (ticket.behind !== holder) this.leaveGroup(ticket)
    this.waiting.add(ticket)
    ticket.behind = holder
    if (holder !== null && holder !== ticket.session?.name) this.watch(holder, ticket, leftMs)
    if (entering && !this.pushLive) {
      this.pollMs = FIRST_POLL_MS
      this.armPoll()
    }
  }

  leave(ticket: Ticket): void {
    if (!this.waiting.delete(ticket)) return
    this.leaveGroup(ticket)
    if (this.waiting.size === 0) this.stopPolling()
  }

  setPushLive(live: boolean): void {
    if (live === this.pushLive) return
    this.pushLive = live
    this.stopPolling()
    if (this.waiting.size === 0) return
    // Back again: what was pushed in between went nowhere. Gone: begin to poll.
    if (live) void this.nudge([...this.waiting])
    else this.armPoll()
  }

  clear(): void {
    for (const group of this.foreign.values()) group.timer?.cancel()
    this.foreign.clear()
    this.waiting.clear()
    this.stopPolling()
  }

  /** Applies the grant rule to these. */
  private async nudge(tickets: Ticket[]): Promise<void> {
    const { backend, context, keeper, nudged } = this.options
    const session = keeper().current
    if (!session) return
    const waiting = tickets.map((ticket) => ({ key: ticket.request.key, ticket: ticket.id }))
    try {
      const replies = await backend.nudge(session.name, waiting)
      if (session !== keeper().current) return
      tickets.forEach((ticket, index) => {
        const reply = replies[index]
        if (reply && ticket.id === waiting[index]?.ticket) nudged(ticket, reply)
      })
    } catch (error) {
      context.logger.debug({ err: error }, 'a nudge was not answered; the next heartbeat repeats it')
    }
  }

  private watch(holder: string, ticket: Ticket, leftMs: number): void {
    let group = this.foreign.get(holder)
    if (!group) {
      group = { tickets: new Set(), diesAt: 0, timer: null, firesAt: 0 }
      this.foreign.set(holder, group)
    }
    group.tickets.add(ticket)
    group.diesAt = this.clock.monotonic() + leftMs
    if (!group.timer || group.diesAt + AFTER_DEATH_MS < group.firesAt - 1) this.armDeath(holder, group)
  }

  private armDeath(holder: string, group: Foreign): void {
    group.timer?.cancel()
    const wait = Math.max(0, group.diesAt - this.clock.monotonic()) + AFTER_DEATH_MS
    group.firesAt = this.clock.monotonic() + wait
    const fire = (): void => {
      group.timer = null
      // Renewed meanwhile, as the heartbeats' answers said: look again at the new end.
      const over = group.diesAt <= this.clock.monotonic()
      // The answer says what is left now; should it be lost, look again soon.
      if (over) group.diesAt = this.clock.monotonic() + this.lookAgainMs
      this.armDeath(holder, group)
      if (over) void this.nudge([...group.tickets])
    }
    group.timer = this.clock.setTimeout(fire, wait, { background: true })
  }

  private leaveGroup(ticket: Ticket): void {
    if (ticket.behind === null) return
    const group = this.foreign.get(ticket.behind)
    group?.tickets.delete(ticket)
    if (group?.tickets.size === 0) {
      group.timer?.cancel()
      this.foreign.delete(ticket.behind)
    }
    ticket.behind = null
  }

  private armPoll(): void {
    if (this.pollTimer || this.pushLive || this.waiting.size === 0) return
    const poll = (): void => {
      this.pollTimer = null
      this.pollMs = Math.min(this.options.maxPollMs, this.pollMs * 2)
      void this.nudge([...this.waiting])
      this.armPoll()
    }
    this.pollTimer = this.clock.setTimeout(poll, this.pollMs, { background: true })
  }

  private stopPolling(): void {
    this.pollTimer?.cancel()
    this.pollTimer = null
    this.pollMs = FIRST_POLL_MS
  }
}
