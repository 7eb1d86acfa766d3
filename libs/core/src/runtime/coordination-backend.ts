/**
 * The port between the coordinator's client logic and a coordination backend (Redis, PostgreSQL, the in-process
 * hub). Driver authors implement `CoordinationBackend`; `SessionCoordinator` does everything that is the same for
 * all of them: sessions and their trust deadline, the local registry of tickets, fences and turns, take order per
 * key, waits, reconciliation, repairs, elections.
 *
 * One instance of this port is one *shard*: one session, one deadline, one loss. A layout with several shards has
 * one instance each (`ShardedBackend`); nothing is shared between them but the connection they may use.
 *
 * Vocabulary. A *session* is named by an incarnation and lives `leaseMs` from its last renewal, by the backend's
 * clock. A *ticket* is named by an id that its session chose (`ticketId`); the same id sent again is the same
 * ticket. A *fence* names one grant of one key. Keys are chat keys, or `lead:<name>` for leaderships: those are
 * turns like any other, whose ticket waits until it leads (the grant that a release makes is what lets a standby
 * take over at once, Z7).
 *
 * Rules for every operation:
 * - Atomic, and idempotent as said beside it. What the backend decides is what `kernel/turn-machine.ts` decides.
 * - It settles within `BackendContext.callTimeoutMs`. A rejection with `CoordinationUnavailableError` means "fate
 *   unknown, or never sent": the caller repeats the same request, with the same ids, until it is answered or its
 *   session is lost. Any other rejection means "this entry is not acceptable and had no effect": it is final and
 *   concerns this entry only. A backend never resends by itself what it cannot prove to be unsent, except by the
 *   protocol's own rules (TRYAGAIN, MOVED, serialization failures).
 * - Calls may be batched per tick inside the backend; entries of a batch are independent and applied in the order
 *   in which they were made. The caller never has two unanswered takes of one key.
 */
import type { Clock, Random } from '../contracts/clock.js'
import type { Logger } from '../contracts/logger.js'
import type { Arrival, ChatState, CommitResult, Effects, ReadOptions } from '../contracts/state-store.js'
import type { Grant, HeldKey, NudgeReply, WaitingKey } from '../kernel/turn-protocol.js'

export type { Grant, HeldKey, NudgeReply, WaitingKey } from '../kernel/turn-protocol.js'
export {
  LEAD_PREFIX,
  incarnationOf,
  sessionOfTicket,
  shardSession,
  ticketId,
  ticketNumber,
} from '../kernel/turn-protocol.js'

/** What the backend calls on its own account. All are safe to call at any time, doubled, late or out of order. */
export interface BackendListener {
  /**
   * A ticket of this session was granted, whoever's call did it: pushed by another replica's release, or found in
   * the reply of this replica's own release, nudge or heartbeat. May overtake the reply of the take. Idempotent
   * by fence.
   */
  granted(session: string, grant: Grant): void
  /** A waiting ticket was dropped at its turn, because its dedupe id is committed by now (Z3). Idempotent. */
  duplicate(session: string, key: string, ticket: string): void
  /** Whether pushes arrive at present. While false, the caller polls with `nudge` (5 ms, backing off to
   * `maxPollMs`). Call it with the first state too; true only once a subscription is confirmed. */
  pushLive(live: boolean): void
  /** The connection is back (optional hint): what waits for a repetition is sent now instead of at the next
   * heartbeat. */
  reconnected(): void
}

export interface BackendContext {
  readonly leaseMs: number
  /** Upper bound for every call: a third of a lease. Then it rejects, its fate unknown. */
  readonly callTimeoutMs: number
  readonly replicaId: string
  readonly listener: BackendListener
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

export interface OpenSessionRequest {
  /** A fresh incarnation. A creation is never resent: the next attempt has another name. */
  session: string
  replicaId: string
  /** The same for all coordinators of one process: two processes with one replicaId are a mistake (scenario 12). */
  processId: string
  leaseMs: number
  /** Highest fence this replica has seen: the backend's floor is raised to it (L4, Z5). */
  floor: number
}

export interface TakeRequest {
  session: string
  key: string
  ticket: string
  /** What `ticket` ends in, behind its session's name and a colon: enough where the session is told once. */
  number?: string
  dedupeId?: string
  /** True: if it is not granted at once, no ticket is left behind (answer `queued`). */
  onlyIfFree?: boolean
  /** Read the chat's state in the same atomic step, for `granted` at once. Only where state is shared. */
  read?: ReadOptions
  /** Note the arrival in the same atomic step, also when queued. Only where state is shared. */
  arrival?: Arrival
}

/**
 * - `granted`: `state` is there only if `read` was asked and this very call made the grant.
 * - `queued`: the ticket stands in line. `holder` is the session that holds the key now (may be one's own) and
 *   `holderLeftMs` what is left of that session's life.
 * - `duplicate`: an effect of `dedupeId` is committed; there is no ticket.
 * - `session-lost`: the session is not alive; there is no ticket.
 * - `overflow`: the key's queue is full; there is no ticket.
 */
export type TakeReply =
  | { outcome: 'granted'; grant: Grant; state?: ChatState; arrival?: 'recorded' | 'duplicate' }
  | { outcome: 'queued'; holder: string | null; holderLeftMs: number; arrival?: 'recorded' | 'duplicate' }
  | { outcome: 'duplicate' }
  | { outcome: 'session-lost' }
  | { outcome: 'overflow' }

export interface ReleaseRequest {
  session: string
  key: string
  fence: number
  ticket: string
  /** `Grant.note`, absent if the grant had none or is not known any more. */
  note?: string
  /** Given if nothing was done under the grant: its `previousHolder`, which the next grant is to name as well. A backend
   * that cannot do that names this session, as after any other turn. */
  previousHolder?: string | null
}

export interface WithdrawRequest {
  session: string
  key: string
  ticket: string
}

export interface CommitRequest {
  session: string
  key: string
  fence: number
  ticket: string
  /** Names this commit among those of its turn: a copy answers what the first one answered. `<ticket>#<n>`, n from
   * 1, in order and never two at once: only the receipt of the last one needs to be kept (2 × `leaseMs`). */
  commitId: string
  /** The n of `commitId`. */
  nth?: number
  effects: Effects
  /** True: the turn ends and the next ticket is granted in the same atomic step. */
  release: boolean
  leaseMs: number
  /** As in `ReleaseRequest`. */
  note?: string
}

/** Something that must be repeated until it is answered. */
export type Repair =
  | ({ kind: 'release' } & ReleaseRequest)
  | ({ kind: 'withdraw' } & WithdrawRequest)
  | ({ kind: 'commit' } & CommitRequest)

/** Answer to a repair: `done` for release and withdraw (nothing of it is left, whoever did it), the commit's
 * result, `unknown` if it has to be sent again, or the reason why it never can be. */
export type RepairReply = 'done' | 'unknown' | { commit: CommitResult } | { failed: Error }

export interface HeartbeatRequest {
  session: string
  replicaId: string
  processId: string
  leaseMs: number
  /** As in `OpenSessionRequest`. */
  floor: number
  /** Every grant that this replica works under, or has handed to a release that is not answered yet. */
  held: readonly HeldKey[]
  /** Tickets that wait, nudged in the same call: all, or some in turns where there are very many. */
  waiting: readonly WaitingKey[]
  /** To be executed after the renewal, on the heartbeat's connection. */
  repairs: readonly Repair[]
}

export type HeartbeatReply =
  | { outcome: 'session-lost' }
  | {
      outcome: 'alive'
      /** Grants of this session in the backend that `held` does not list, also those of `waiting` tickets. */
      unknown: Grant[]
      /** Entries of `held` that the backend does not hold for this session under that very fence. */
      missing: HeldKey[]
      /** One per `waiting`, same order. */
      waiting: NudgeReply[]
      /** One per `repairs`, same order. */
      repairs: RepairReply[]
      /** Process that last wrote the record of this replicaId, if it is not `processId`: a twin (scenario 12). */
      twin?: string
    }

export interface CoordinationBackend {
  /** For messages and logs, such as `redis`. */
  readonly kind: string
  /** For errors: which server, such as `Redis at host:port`; never with a secret. */
  readonly place?: string
  /**
   * Connects, checks the server and starts listening for pushes. Called again after `close`, and after a failure.
   * @throws ConfigError for what can never work (password, URL, server, protocol version);
   * CoordinationUnavailableError otherwise: it is tried again.
   */
  open(context: BackendContext): Promise<void>
  /** Ends connections of its own; pending calls reject. Idempotent, never throws. */
  close(): Promise<void>
  /** True if `store` keeps its data where this backend keeps turns, so that `commit` writes both at once. */
  sharesStateWith(store: unknown): boolean

  /** Creates the session and subscribes to its grants before it answers. Not idempotent; never resent. */
  openSession(request: OpenSessionRequest): Promise<void>
  /** Ends the session: releases all it holds, drops its tickets, grants the next ones. Idempotent. */
  closeSession(session: string): Promise<void>
  /**
   * Renews the session, raises the floor, nudges the waiting tickets, compares fences, executes repairs: one call
   * whatever the number of chats (Z2), on a connection of its own. The renewal fails if the session is gone: a
   * session is never created by it. Idempotent.
   */
  heartbeat(request: HeartbeatRequest): Promise<HeartbeatReply>

  /** Idempotent by ticket id: a known ticket is answered as it stands. */
  take(request: TakeRequest): Promise<TakeReply>
  /** Ends the grant of that fence, if it is the current one, and grants the next live ticket. Idempotent. */
  release(request: ReleaseRequest): Promise<void>
  /** Removes a waiting ticket; if it was granted meanwhile, releases it. Unknown tickets are no error. If a copy of
   * its take lands later still, that ghost is released by the caller when its grant shows up. Idempotent. */
  withdraw(request: WithdrawRequest): Promise<void>
  /** Fenced, atomic, idempotent by `commitId`: see `Turn.commit` and I5, I12 (docs/invariants.md). */
  commit(request: CommitRequest): Promise<CommitResult>
  /** The grant rule for tickets that wait, perhaps behind a dead session. Same order as `waiting`. Idempotent. */
  nudge(session: string, waiting: readonly WaitingKey[]): Promise<NudgeReply[]>
}

/** Chats spread over shards, each with its own session. `shardOf` is pure. */
export interface ShardedBackend {
  readonly shards: number
  shardOf(key: string): number
  shard(index: number): CoordinationBackend
}
