/**
 * What is left of a conversation when its span ends before it settled (T4, H7, H8), and how long what it leaves
 * in the store may live (H1, H6, H10). Pure.
 */
import {
  LeaseLostError,
  TooManyAttemptsError,
  WaitTimeoutError,
  type LeaseLostReason,
} from '../contracts/errors.js'
import type { FlowCheckpoint } from '../contracts/checkpoint-store.js'

/** The message that the interrupted step works off under this span, if any: its answer, or what entered the flow. */
export type AnswerHeld =
  /** None: it was woken by a timer. */
  | 'none'
  /** A checkpoint holds it, stored or owed (H7). */
  | 'kept'
  /** No checkpoint holds it: a later question, too large, or a flow that is not stored. */
  | 'unkept'

export interface SuspensionFacts {
  reason: LeaseLostReason
  answer: AnswerHeld
  /** There is a record, and so a choice. */
  durable: boolean
}

/**
 * H8: whether the record of an interrupted span must be worked on again. A lost turn needs no decision: its record
 * was never acknowledged. Where the turn is still held (`settled`, `stopped`) the span's commit follows, and must
 * not acknowledge an answer that no checkpoint holds.
 *
 * Nor one that a checkpoint does hold, if its replica is stopping: as after a death, another one finds the record and
 * goes on with the step, also if the chat never writes again (D1). A step that was too long for its turn would be too
 * long again: it waits for the chat's next message.
 */
export function withholdsAck({ reason, answer, durable }: SuspensionFacts): boolean {
  if (!durable || answer === 'none') return false
  return reason === 'stopped' || (reason === 'settled' && answer === 'unkept')
}

/** How an error that a conversation's code did not catch ends it. */
export type Ending =
  /** Its own turn is gone: the copy is discarded, the store is left alone (L2, K4). */
  | 'lost'
  /** Nobody answered, or not acceptably: no fault of the code. */
  | 'quiet'
  /** Reported; with durability the attempt has failed. */
  | 'failed'

export function endingOf(error: unknown, key: string): Ending {
  // Somebody else's lease, such as a job's leadership, is an error like any other here.
  if (error instanceof LeaseLostError && error.key === key) return 'lost'
  return error instanceof WaitTimeoutError || error instanceof TooManyAttemptsError ? 'quiet' : 'failed'
}

/**
 * Life of an ephemeral checkpoint or marker after a write, milliseconds: `ttlMs`, but while it waits never less than
 * the wait's timeout (H1), which thus starts again on another replica within it (H10).
 * @param graceMs how much longer a checkpoint must live for that timeout to find it (ADR 8).
 */
export function ttlOf(ttlMs: number, waitTimeoutMs: number | null | undefined, graceMs = 0): number {
  const waits = waitTimeoutMs ?? null
  return waits === null ? ttlMs : Math.max(ttlMs, waits + graceMs)
}

/**
 * When somebody is to look at a chat that this is left of, milliseconds from now (ADR 8): at the timeout of its wait;
 * null if it has none, or if its question has got its answer.
 */
export function appointmentOf({ wait, answer }: Pick<FlowCheckpoint, 'wait' | 'answer'>): number | null {
  return answer === undefined ? (wait?.timeoutMs ?? null) : null
}

/**
 * Whether to write a conversation's marker at a wait (H6): at its first one, and again only when half of its life
 * has passed, so that a long conversation keeps its marker and a short one costs two writes.
 */
export function markerDue(written: { ageMs: number; ttlMs: number } | null, nextTtlMs: number): boolean {
  return written === null || nextTtlMs > written.ttlMs || written.ageMs * 2 >= written.ttlMs
}
