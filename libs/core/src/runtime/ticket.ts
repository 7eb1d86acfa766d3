/**
 * One call of `take`, from the moment it is made until it is settled or its turn has ended.
 *
 * States: `line` (behind another unanswered take of its key, or no session yet) → `asking` (sent, not answered) →
 * `waiting` (stands in the backend's line) → `granted` (not handed over yet: the session must be renewed first) →
 * `held` → `done`. `asking` → `granted` when the grant is immediate or overtakes the reply; any of the first four →
 * `done` when it is given up, refused or a duplicate; any of `asking`, `waiting`, `granted` → `line` when the
 * session is lost before the application saw the turn.
 */
import type { Clock, Timer } from '../contracts/clock.js'
import { CoordinationUnavailableError } from '../contracts/errors.js'
import type { Logger } from '../contracts/logger.js'
import type { Turn } from '../contracts/coordinator.js'
import type { Arrival, ChatState, ReadOptions } from '../contracts/state-store.js'
import type { Grant } from './coordination-backend.js'
import type { HeldTurn } from './held-turn.js'
import type { Session } from './session-keeper.js'
import type { TicketLine } from './ticket-line.js'

export type TakeResult = Turn | 'duplicate' | 'taken'

export interface TicketRequest {
  readonly key: string
  /** Infinity: as long as it takes. */
  readonly waitMs: number
  readonly dedupeId?: string | undefined
  readonly signal?: AbortSignal | undefined
  readonly read?: ReadOptions | undefined
  readonly arrival?: Arrival | undefined
  /** Resolve with `taken` instead of waiting. */
  readonly onlyIfFree?: boolean
  readonly onTicket?: (() => void) | undefined
  /** Somebody else holds the key at present. */
  readonly onQueued?: () => void
}

export interface Ticket {
  readonly request: TicketRequest
  readonly settle: { resolve(result: TakeResult): void; reject(error: unknown): void }
  readonly since: number
  status: 'line' | 'asking' | 'waiting' | 'granted' | 'held' | 'done'
  /** Of the session it was sent under; null until then. */
  session: Session | null
  n: number
  id: string
  /** The end of `id`. */
  number: string
  grant: Grant | null
  state: ChatState | undefined
  turn: HeldTurn | null
  announced: boolean
  /** Session that holds the key, as last heard. */
  behind: string | null
  timer: Timer | null
  onAbort: (() => void) | null
  /** Where it stands while its status is `line`; kept by `TicketLine`. */
  line: TicketLine<Ticket> | null
  previous: Ticket | null
  next: Ticket | null
}

export function newTicket(request: TicketRequest, settle: Ticket['settle'], since: number): Ticket {
  return {
    request,
    settle,
    since,
    status: 'line',
    session: null,
    n: 0,
    id: '',
    number: '',
    grant: null,
    state: undefined,
    turn: null,
    announced: false,
    behind: null,
    timer: null,
    onAbort: null,
    line: null,
    previous: null,
    next: null,
  }
}

/** Listens to the caller's signal: `giveUp` is called when it fires. */
export function heed(ticket: Ticket, giveUp: (error: unknown) => void): void {
  const { signal } = ticket.request
  if (!signal) return
  ticket.onAbort = () => giveUp(signal.reason)
  signal.addEventListener('abort', ticket.onAbort, { once: true })
}

/** Bounds the wait, unless that is done: `giveUp` is called when it has lasted too long. */
export function bound(ticket: Ticket, clock: Clock, giveUp: (error: unknown) => void): void {
  const { waitMs } = ticket.request
  if (ticket.timer || !Number.isFinite(waitMs)) return
  const left = Math.max(0, ticket.since + waitMs - clock.monotonic())
  ticket.timer = clock.setTimeout(() => giveUp(lateError(ticket, clock.monotonic())), left)
}

/** Tells the caller, once, that its ticket stands in line. */
export function announce(ticket: Ticket, logger: Logger): void {
  if (ticket.announced) return
  ticket.announced = true
  try {
    ticket.request.onTicket?.()
  } catch (error) {
    logger.error({ err: error, key: ticket.request.key }, 'onTicket threw')
  }
}

function lateError(ticket: Ticket, now: number): Error {
  const why = ticket.announced ? 'timeout' : 'unreachable'
  const waitedMs = Math.round(now - ticket.since)
  return new CoordinationUnavailableError(why, { key: ticket.request.key, waitedMs })
}

/** Ends the wait: neither its time limit nor its signal matters any more. */
export function disarm(ticket: Ticket): void {
  ticket.timer?.cancel()
  ticket.timer = null
  if (ticket.onAbort) ticket.request.signal?.removeEventListener('abort', ticket.onAbort)
  ticket.onAbort = null
}
