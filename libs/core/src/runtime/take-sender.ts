/**
 * Sends takes, one unanswered at a time per key (T2), and sends the same ticket again while its fate is unknown. What
 * cannot be sent (no session) or was not answered stays in `unsent` until the session, a timer, a heartbeat or a
 * reconnection lets it go on; until then it keeps its key's place.
 */
import { CoordinationUnavailableError } from '../contracts/errors.js'
import type { Timer } from '../contracts/clock.js'
import { Backoff } from './backoff.js'
import type { BackendContext, CoordinationBackend, TakeReply, TakeRequest } from './coordination-backend.js'
import type { Session, SessionKeeper } from './session-keeper.js'
import type { Ticket } from './ticket.js'
import type { TicketRegistry } from './ticket-registry.js'

export type SettledTakeReply = Exclude<TakeReply, { outcome: 'session-lost' }>

export interface TakeSenderOptions {
  backend: CoordinationBackend
  context: BackendContext
  keeper: () => SessionKeeper
  registry: TicketRegistry
  /** The answer to the ticket's take, under the session that is still the current one. */
  answered: (ticket: Ticket, session: Session, reply: SettledTakeReply) => void
  /** It has to wait for a session, or to be sent again. */
  delayed: (ticket: Ticket) => void
  /** Never acceptable. */
  refused: (ticket: Ticket, error: unknown) => void
  /** Not answered, and given up meanwhile: it may stand in the backend's line. */
  abandoned: (ticket: Ticket) => void
}

export class TakeSender {
  private readonly unsent = new Set<Ticket>()
  private retryTimer: Timer | null = null
  private readonly pause: Backoff

  constructor(private readonly options: TakeSenderOptions) {
    const { random, leaseMs } = options.context
    this.pause = new Backoff(random, 20, leaseMs / 6)
  }

  send(ticket: Ticket): void {
    const { backend, keeper, registry } = this.options
    const session = keeper().current
    if (!session) {
      this.unsent.add(ticket)
      this.options.delayed(ticket)
      keeper().ensure()
      return
    }
    registry.enter(ticket, session)
    ticket.status = 'asking'
    const { id } = ticket
    backend.take(requestOf(ticket, session)).then(
      (reply) => this.workOff(ticket, session, id, reply, null),
      (error: unknown) => this.workOff(ticket, session, id, null, error),
    )
  }

  /** What is thrown ends here: one promise more for a `catch` would be one more for every message. */
  private workOff(
    ticket: Ticket,
    session: Session,
    id: string,
    reply: TakeReply | null,
    error: unknown,
  ): void {
    try {
      if (reply) this.answered(ticket, session, id, reply)
      else this.unanswered(ticket, session, id, error)
    } catch (thrown) {
      this.options.context.logger.error({ err: thrown }, 'a take could not be worked off')
    }
  }

  /** Goes on with everything that waits for a chance. */
  sendUnsent(): void {
    this.cancelRetry()
    const tickets = [...this.unsent]
    this.unsent.clear()
    for (const ticket of tickets) {
      if (ticket.status === 'line' || ticket.status === 'asking') this.send(ticket)
    }
  }

  hurry(): void {
    this.pause.reset()
    this.sendUnsent()
  }

  /** The ticket's take is over: the next one of its key goes. */
  next(ticket: Ticket, session: Session | null): void {
    // Lost while it was being answered: the lines have begun anew.
    if (session !== this.options.keeper().current) return
    const next = this.options.registry.answered(ticket)
    if (next) this.send(next)
  }

  /**
   * The ticket needs no answer any more (granted by a push, given up).
   * @returns true if no answer is to come, so that its place was given on; false if the answer will do that.
   */
  free(ticket: Ticket): boolean {
    if (!this.unsent.delete(ticket)) return false
    this.next(ticket, this.options.keeper().current)
    return true
  }

  clear(): void {
    this.cancelRetry()
    this.unsent.clear()
  }

  private answered(ticket: Ticket, session: Session, id: string, reply: TakeReply): void {
    // Of an incarnation that is over: whatever it was ended with it.
    if (session !== this.options.keeper().current || ticket.id !== id) return
    this.pause.reset()
    if (reply.outcome === 'session-lost') return this.options.keeper().reportGone(session)
    this.options.answered(ticket, session, reply)
    this.next(ticket, session)
  }

  private unanswered(ticket: Ticket, session: Session, id: string, error: unknown): void {
    if (session !== this.options.keeper().current || ticket.id !== id) return
    if (!(error instanceof CoordinationUnavailableError)) {
      this.options.refused(ticket, error)
      return this.next(ticket, session)
    }
    if (ticket.status === 'done') this.options.abandoned(ticket)
    // Given up, or granted by a push meanwhile: that was the answer.
    if (ticket.status !== 'asking') return this.next(ticket, session)
    this.unsent.add(ticket)
    this.options.delayed(ticket)
    const { clock } = this.options.context
    this.retryTimer ??= clock.setTimeout(() => this.sendUnsent(), this.pause.next(), { background: true })
  }

  private cancelRetry(): void {
    this.retryTimer?.cancel()
    this.retryTimer = null
  }
}

function requestOf({ request, id, number }: Ticket, session: Session): TakeRequest {
  const take: TakeRequest = { session: session.name, key: request.key, ticket: id, number }
  if (request.dedupeId !== undefined) take.dedupeId = request.dedupeId
  if (request.read !== undefined) take.read = request.read
  if (request.arrival !== undefined) take.arrival = request.arrival
  if (request.onlyIfFree) take.onlyIfFree = true
  return take
}
