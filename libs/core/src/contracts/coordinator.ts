/**
 * Who serves which chat, and who leads what. The classes are abstract rather than interfaces because they are
 * injection tokens too.
 *
 * A coordinator lives as a sequence of *incarnations*: each is one session in the backend. A session that was
 * lost never comes back; everything held under it is lost with it, and a new incarnation begins by itself.
 */
import type { LeaseLostReason } from './errors.js'
import type { Logger } from './logger.js'
import type { Arrival, ChatState, CommitResult, Effects, ReadOptions } from './state-store.js'

/** Milliseconds, or a string such as `'500ms'`, `'15s'`, `'2m'`, `'1h'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

/** The right to serve a chat, alone, until released or lost. */
export interface Turn {
  readonly key: string
  /** A safe integer, strictly greater than that of every earlier turn of this key (L4). */
  readonly fence: number
  /** Incarnation that was granted this chat before, however that turn ended; null if unknown (T7). */
  readonly previousHolder: string | null
  /** Revision of the checkpoint row at the grant, if the coordinator shares the store's backend: undefined if unknown. */
  readonly revision: string | null | undefined
  /** What `take(…, { read })` brought along; undefined unless that very call was granted at once. */
  readonly state: ChatState | undefined
  /** Fires when the turn is lost; `reason` is the LeaseLostError. Does not fire on an orderly release. */
  readonly signal: AbortSignal
  /** No I/O; monotonic clock. @throws LeaseLostError */
  assertHeld(): void
  /**
   * Ends the turn and grants the next ticket. Idempotent; resolves even if the backend is unreachable (it is then
   * repaired in the background, L3).
   * @param options.unused nothing was done under it, not even what `previousHolder` is for: the next grant names the
   * holder before this one, whose copy in memory is still the truth (T7). A backend may ignore it; then that copy
   * counts as stale.
   */
  release(options?: { unused?: boolean }): Promise<void>
  /**
   * Stores effects in the shared backend, fenced, in one trip; with `release` (default true) also ends the turn.
   * Only where the coordinator shares the store's backend (`sharesBackendWith`). A lost reply is repeated with the
   * same identity until answered or the turn is lost.
   * @throws LeaseLostError if the turn is lost first; the effects may then have been stored.
   */
  commit(effects: Effects, options?: { release?: boolean }): Promise<CommitResult>
}

export interface TakeOptions {
  /** How long to wait for the grant; then `CoordinationUnavailableError`. Default 2 minutes. */
  waitMs?: Duration
  /** The message's id: a committed one answers `duplicate`, also at the grant (Z3). */
  dedupeId?: string
  /** Gives up the ticket. The promise rejects with the signal's reason. */
  signal?: AbortSignal
  /** Bring the chat's state along if granted at once (shared backend only). */
  read?: ReadOptions
  /** Note the arrival in the same trip (shared backend only). A `duplicate` of the journal does not refuse the
   * ticket: the record still has to be worked on. */
  arrival?: Arrival
  /** Called once, when the ticket stands in the backend's queue (or was granted): the message is accepted. */
  onTicket?: () => void
}

export abstract class TurnQueue {
  /**
   * Takes a ticket in the chat's queue and waits for its grant (T1). Calls for one key from one replica are
   * queued in the order made. Concurrent calls for different keys are independent.
   * @returns the turn, or `duplicate` if an effect of `dedupeId` is committed.
   * @throws CoordinationUnavailableError on time-out or an unreachable backend (T6).
   */
  abstract take(key: string, options?: TakeOptions): Promise<Turn | 'duplicate'>
}

export interface Leadership {
  readonly name: string
  readonly fence: number
  readonly signal: AbortSignal
  assertHeld(): void
  release(): Promise<void>
}

export type FollowReason = 'standby' | 'lost' | 'resigned' | 'transport-down' | 'stopped'

export interface CampaignListener {
  /** Elected. Exceptions are logged. */
  onLead(leadership: Leadership): void
  /** Not leading: at first `standby` if somebody else leads, later why it ended. */
  onFollow(reason: FollowReason): void
}

export interface Candidacy {
  readonly leadership: Leadership | null
  /** Resigns, does not stand for `pauseMs`, then stands again (P3). */
  resign(reason: FollowReason, pauseMs: number): Promise<void>
  /** Leaves for good: resigns at once if leading. Idempotent. */
  stop(): Promise<void>
}

export abstract class LeaderElection {
  /** Stands for `name` until stopped, also across lost sessions. */
  abstract campaign(name: string, listener: CampaignListener): Candidacy
}

export type CoordinatorStatus =
  | { status: 'idle' | 'starting' | 'live' | 'stopped' }
  /** No proof of life lately; `sinceMs` by the local clock. Turns are kept until the trust deadline. */
  | { status: 'unreachable'; sinceMs: number; error: string }

export abstract class Coordinator {
  abstract readonly replicaId: string
  /** Changes when a session was lost and begun anew (C3). */
  abstract readonly incarnation: string
  abstract readonly leaseMs: number
  abstract readonly turns: TurnQueue
  abstract readonly elections: LeaderElection
  abstract readonly status: CoordinatorStatus
  /** Lends a logger, before `start`: a coordinator that was given none logs through it. The first one stays. */
  useLogger?(logger: Logger): void
  /** True if turns and this store's data live in one place, so that `Turn.commit` writes both at once. */
  abstract sharesBackendWith(store: unknown): boolean
  /** Begins the session. Idempotent; everything that needs it calls it too.
   * @throws ConfigError at once for a wrong password, URL or server; CoordinationUnavailableError after
   * `startTimeoutMs` (30 s) of trying. */
  abstract start(): Promise<void>
  /** One try; null if somebody else leads. */
  abstract tryLead(name: string): Promise<Leadership | null>
  /** Resigns and releases at once, so that others need not wait for the lease. Idempotent. */
  abstract stop(): Promise<void>
  /** Turns and leaderships lost, as they are lost. @returns how to stop listening. */
  abstract onLost(listener: (lost: { key: string; reason: LeaseLostReason }) => void): () => void
}
