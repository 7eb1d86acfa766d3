/**
 * What is left of a conversation when its span ends before it settled (T4, H7, H8), and how long what it leaves
 * in the store may live (H1, H6, H10). Pure.
 */
import type { LeaseLostReason } from '../contracts/errors.js'

/** The answer that the interrupted step had been given under this span, if any. */
export type AnswerHeld =
  /** None: it was entered, or woken by a timer. */
  | 'none'
  /** A checkpoint holds it, stored or owed (H7). */
  | 'kept'
  /** No checkpoint holds it: a later question, too large, or a flow that is not stored. */
  | 'unkept'

export interface SuspensionFacts {
  reason: LeaseLostReason
  /** The span may still act: its turn is held and it will be committed. */
  live: boolean
  /** A change is owed to the store. */
  owed: boolean
  answer: AnswerHeld
  durable: boolean
}

export interface SuspensionDecision {
  /** Leave the owed change for the commit that ends the span. */
  stage: boolean
  /** H8: the record must be worked on again. */
  withholdAck: boolean
}

/** A lost turn leaves nothing: what it owed is no longer its to write (K4), and its record was never acknowledged. */
export function decideSuspension(facts: SuspensionFacts): SuspensionDecision {
  if (!facts.live) return { stage: false, withholdAck: false }
  return { stage: facts.owed, withholdAck: facts.durable && facts.answer === 'unkept' }
}

/**
 * Life of an ephemeral checkpoint or marker after a write, milliseconds: `ttlMs`, but while it waits never less than
 * the wait's timeout (H1), which thus starts again on another replica within it (H10).
 */
export function ttlOf(ttlMs: number, waitTimeoutMs: number | null | undefined): number {
  return Math.max(ttlMs, waitTimeoutMs ?? 0)
}

/**
 * Whether to write a conversation's marker at a wait (H6): at its first one, and again only when half of its life
 * has passed, so that a long conversation keeps its marker and a short one costs two writes.
 */
export function markerDue(written: { ageMs: number; ttlMs: number } | null, nextTtlMs: number): boolean {
  return written === null || nextTtlMs > written.ttlMs || written.ageMs * 2 >= written.ttlMs
}
