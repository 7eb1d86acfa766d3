/** What coordination backends and their clients say to each other about turns: plain data, shared by the pure turn
 * machine and the backend port (`runtime/coordination-backend.ts`). */

/** One grant. `fence` is compared, never the ticket id alone: a ghost may hold an old ticket under a new fence. */
export interface Grant {
  key: string
  ticket: string
  fence: number
  /** Session that was granted this key before, however that turn ended; null if unknown (T7). */
  previousHolder: string | null
  /** Revision of the checkpoint row at the grant, tombstones included, null without a row; absent: unknown. */
  revision?: string | null
  /** Opaque: what the backend wants to be told again with the release or commit of this grant. */
  note?: string
}

export interface HeldKey {
  key: string
  fence: number
  ticket: string
}

export interface WaitingKey {
  key: string
  ticket: string
}

/**
 * What became of a waiting ticket.
 * - `granted`: it holds the key.
 * - `queued`: as in `TakeReply`.
 * - `duplicate`: dropped, its dedupe id is committed.
 * - `unknown`: no such ticket: the caller takes again with the same id.
 * - `session-lost`.
 */
export type NudgeReply =
  | { outcome: 'granted'; grant: Grant }
  | { outcome: 'queued'; holder: string | null; holderLeftMs: number }
  | { outcome: 'duplicate' }
  | { outcome: 'unknown' }
  | { outcome: 'session-lost' }

/** Key of the leadership `name`. Chat keys never begin like this: their parts are percent-encoded. */
export const LEAD_PREFIX = 'lead:'

/** What the id of a session's n-th ticket ends in. */
export function ticketNumber(n: number): string {
  return n.toString(36)
}

/** Names a ticket of a session. @param number `ticketNumber` of it, or which it is. */
export function ticketId(session: string, number: string | number): string {
  return `${session}:${typeof number === 'number' ? ticketNumber(number) : number}`
}

/** The session that a ticket belongs to: everything before the last colon. */
export function sessionOfTicket(ticket: string): string {
  return ticket.slice(0, ticket.lastIndexOf(':'))
}

/** Session of one shard of several: `<incarnation>:<shard>:<epoch>`. With one shard a session is its incarnation. */
export function shardSession(incarnation: string, shard: number, epoch: number): string {
  return `${incarnation}:${shard}:${epoch}`
}

/** The incarnation that a session belongs to (T7): the same for all shards of a coordinator. */
export function incarnationOf(session: string): string {
  return session.replace(/:\d+:\d+$/, '')
}
