/**
 * The rule that decides who serves a key: written once, run directly by the in-process hub, and what every other
 * backend must decide too (a differential test compares them). Keeps I1–I9 of docs/invariants.md.
 *
 * A key is always in one of these states:
 * - *idle*: no holder, nobody waits. `take` → held.
 * - *held*: one grant (fence) of one session; others may wait in line. `release`, `commit` with release, `withdraw`
 *   of the held ticket, the end of the holder's session → the next live ticket is granted, else idle.
 * - *orphaned*: held by a session that has lapsed, not noticed yet. Any `take` or `nudge` of the key, or `lapse`
 *   of the session → as after a release.
 * A ticket is waiting → granted → ended, or waiting → withdrawn | dropped (dead session) | duplicate (its id was
 * committed meanwhile). Ignored, because it is late or doubled: a release or commit of another fence than the
 * current one, a withdrawal of an unknown ticket, a second copy of anything.
 *
 * Every function is an event: (state, event, now) → reply and effects. It is deterministic and does no I/O. The
 * state is changed in place: a fresh copy of a line of 100,000 tickets for each of them would be quadratic.
 */
import type { CommitResult } from '../contracts/state-store.js'
import { emptyKey, type TurnMachineState } from './turn-state.js'
import {
  answerFor,
  endGrant,
  endSession,
  grantAtOnce,
  grantNext,
  holds,
  isCommitted,
  liveSession,
  noteCommitted,
  noteIdle,
  noteReceipt,
  queuedBehind,
  raiseFloor,
  type CommitEvent,
  type TakeDecision,
  type TurnEffect,
} from './turn-rules.js'
import type { Grant, HeldKey, NudgeReply, WaitingKey } from './turn-protocol.js'

export type { CommitEvent, TakeDecision, TurnEffect } from './turn-rules.js'

export interface Outcome<Reply> {
  reply: Reply
  effects: TurnEffect[]
}

export interface TicketEvent {
  session: string
  key: string
  ticket: string
  dedupeId?: string
  onlyIfFree?: boolean
}

// --- sessions --------------------------------------------------------------------------------------------------

/** Begins a session. A name in use is refused: incarnations are never used twice. */
export function openSession(
  state: TurnMachineState,
  event: { session: string; replicaId: string; processId: string; leaseMs: number; floor: number },
  now: number,
): Outcome<'opened' | 'exists'> {
  const effects = lapseDead(state, now)
  if (state.sessions.has(event.session)) return { reply: 'exists', effects }
  raiseFloor(state, event.floor)
  state.processes.set(event.replicaId, event.processId)
  state.sessions.set(event.session, {
    session: event.session,
    replicaId: event.replicaId,
    leaseMs: event.leaseMs,
    expiresAt: now + event.leaseMs,
    held: new Map(),
  })
  return { reply: 'opened', effects }
}

/** Renews a live session; a dead one stays dead (I2). */
export function renewSession(
  state: TurnMachineState,
  event: { session: string; processId: string; floor: number },
  now: number,
): Outcome<{ alive: boolean; twin?: string }> {
  const effects = lapseDead(state, now)
  const session = state.sessions.get(event.session)
  raiseFloor(state, event.floor)
  if (!session) return { reply: { alive: false }, effects }
  session.expiresAt = now + session.leaseMs
  const last = state.processes.get(session.replicaId)
  state.processes.set(session.replicaId, event.processId)
  const twin = last !== undefined && last !== event.processId ? { twin: last } : {}
  return { reply: { alive: true, ...twin }, effects }
}

/** Ends a session: what it held goes to the next in line. Idempotent. */
export function closeSession(state: TurnMachineState, session: string, now: number): Outcome<null> {
  const effects: TurnEffect[] = []
  const closing = state.sessions.get(session)
  // First of all: nothing is granted any more to a session that is leaving.
  if (closing) endSession(state, closing, now, effects)
  effects.push(...lapseDead(state, now))
  return { reply: null, effects }
}

/** Compares what a session holds here with what it says it holds. */
export function compareHeld(
  state: TurnMachineState,
  session: string,
  claimed: readonly HeldKey[],
): { unknown: Grant[]; missing: HeldKey[] } {
  const held = state.sessions.get(session)?.held ?? new Map<string, Grant>()
  const missing = claimed.filter((one) => held.get(one.key)?.fence !== one.fence)
  const known = new Set(claimed.map((one) => one.fence))
  const unknown = [...held.values()].filter((grant) => !known.has(grant.fence))
  return { unknown, missing }
}

// --- tickets ---------------------------------------------------------------------------------------------------

/** Takes a ticket. A known one is answered as it stands, whatever else is true by now. */
export function take(state: TurnMachineState, event: TicketEvent, now: number): Outcome<TakeDecision> {
  const effects: TurnEffect[] = []
  const session = liveSession(state, event.session, now)
  const key = state.keys.get(event.key)
  if (session && key?.holder?.grant.ticket === event.ticket) {
    return { reply: { outcome: 'granted', grant: key.holder.grant, fresh: false }, effects }
  }
  if (session && key?.queue.has(event.ticket)) {
    grantNext(state, event.key, key, now, effects)
    return { reply: answerFor(state, event.key, key, event.ticket, now, false), effects }
  }
  if (!session) return { reply: { outcome: 'session-lost' }, effects }
  if (key && isCommitted(state, key, event.dedupeId, now)) return { reply: { outcome: 'duplicate' }, effects }
  if (key && key.queue.size >= state.limits.maxWaitingPerKey)
    return { reply: { outcome: 'overflow' }, effects }
  const entered = key ?? emptyKey()
  if (!key) state.keys.set(event.key, entered)
  const { session: name, ticket, dedupeId } = event
  const entry = dedupeId === undefined ? { session: name, ticket } : { session: name, ticket, dedupeId }
  if (entered.holder === null && entered.queue.size === 0) {
    grantAtOnce(state, event.key, entered, entry, now)
  } else {
    entered.queue.push(entry)
    grantNext(state, event.key, entered, now, effects, event.ticket)
  }
  const reply = answerFor(state, event.key, entered, event.ticket, now, true)
  if (event.onlyIfFree && reply.outcome === 'queued') entered.queue.remove(event.ticket)
  return { reply, effects }
}

/**
 * Ends the grant of exactly that fence. Anything else is late and changes nothing (I5).
 * @param event.previousHolder given if nothing was done under the grant: the next one names this holder, too (I8).
 */
export function release(
  state: TurnMachineState,
  event: { session: string; key: string; fence: number; previousHolder?: string | null },
  now: number,
): Outcome<'released' | 'absent'> {
  const effects: TurnEffect[] = []
  const key = state.keys.get(event.key)
  if (!key || !holds(state, key, event)) return { reply: 'absent', effects }
  if (event.previousHolder !== undefined) key.previousHolder = event.previousHolder
  endGrant(state, event.key, key)
  grantNext(state, event.key, key, now, effects)
  return { reply: 'released', effects }
}

/** A waiter gives up; granted meanwhile, it releases. */
export function withdraw(
  state: TurnMachineState,
  event: { session: string; key: string; ticket: string },
  now: number,
): Outcome<null> {
  const effects: TurnEffect[] = []
  const key = state.keys.get(event.key)
  if (!key) return { reply: null, effects }
  if (key.holder?.grant.ticket === event.ticket) {
    endGrant(state, event.key, key)
    grantNext(state, event.key, key, now, effects)
  } else if (key.queue.remove(event.ticket)) {
    noteIdle(state, event.key, key)
  }
  return { reply: null, effects }
}

/** The grant rule for tickets that wait, perhaps behind a dead session. */
export function nudge(
  state: TurnMachineState,
  session: string,
  waiting: readonly WaitingKey[],
  now: number,
): Outcome<NudgeReply[]> {
  const effects: TurnEffect[] = []
  if (!liveSession(state, session, now)) {
    return { reply: waiting.map(() => ({ outcome: 'session-lost' })), effects }
  }
  const reply = waiting.map((one): NudgeReply => {
    const key = state.keys.get(one.key)
    if (!key) return { outcome: 'unknown' }
    grantNext(state, one.key, key, now, effects)
    if (key.holder?.grant.ticket === one.ticket) return { outcome: 'granted', grant: key.holder.grant }
    if (key.queue.has(one.ticket)) return queuedBehind(state, key, now)
    const dropped = effects.some((effect) => effect.type === 'duplicate' && effect.ticket === one.ticket)
    return { outcome: dropped ? 'duplicate' : 'unknown' }
  })
  return { reply, effects }
}

/**
 * Commits under the current fence of a live session, and with `release` ends the turn in the same step (Z4).
 * @param store stores the effects, in this very step; a refusal of it (another revision) refuses the commit.
 */
export function commit(
  state: TurnMachineState,
  event: CommitEvent,
  now: number,
  store: () => CommitResult,
): Outcome<CommitResult> {
  const effects: TurnEffect[] = []
  const key = state.keys.get(event.key)
  const receipt = key?.receipts?.get(event.ticket)
  if (receipt?.commitId === event.commitId) return { reply: receipt.result, effects }
  const alive = liveSession(state, event.session, now) !== undefined
  if (!key || (!holds(state, key, event) && !state.broken.has('fence-check'))) {
    const later = key !== undefined && key.lastFence > event.fence
    return { reply: { outcome: 'refused', why: later ? 'superseded' : 'absent' }, effects }
  }
  if (!alive && !state.broken.has('fence-check')) {
    return { reply: { outcome: 'refused', why: 'absent' }, effects }
  }
  const result = store()
  if (result.outcome === 'refused') return { reply: result, effects }
  if (event.inboundId !== undefined) noteCommitted(state, key, event.inboundId, now)
  noteReceipt(state, key, event, result, now)
  if (event.release && holds(state, key, event)) {
    endGrant(state, event.key, key)
    grantNext(state, event.key, key, now, effects)
  }
  return { reply: result, effects }
}

/** Ends every session that has lapsed and grants what they held: called by whoever touches sessions. */
export function lapseDead(state: TurnMachineState, now: number): TurnEffect[] {
  const effects: TurnEffect[] = []
  if (state.broken.has('dead-holder')) return effects
  for (const session of state.sessions.values()) {
    if (session.expiresAt <= now) endSession(state, session, now, effects)
  }
  return effects
}

export function isCommittedId(state: TurnMachineState, keyName: string, id: string, now: number): boolean {
  const key = state.keys.get(keyName)
  return key !== undefined && isCommitted(state, key, id, now)
}
