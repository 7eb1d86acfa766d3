/**
 * The rules that the events of the turn machine (`turn-machine.ts`) share: who is granted next, under which fence,
 * and what is remembered after a turn. Not to be called by anything else.
 */
import type { CommitResult } from '../contracts/state-store.js'
import type { QueuedTicket } from './ticket-queue.js'
import type { Grant, NudgeReply } from './turn-protocol.js'
import type { KeyState, SessionState, TurnMachineState } from './turn-state.js'

/** What has to be told to a session that did not ask in this very event. */
export type TurnEffect =
  | { type: 'granted'; session: string; grant: Grant }
  | { type: 'duplicate'; session: string; key: string; ticket: string }

export type TakeDecision =
  | { outcome: 'granted'; grant: Grant; fresh: boolean }
  | Exclude<NudgeReply, { outcome: 'granted' } | { outcome: 'unknown' }>
  | { outcome: 'overflow' }

export interface CommitEvent {
  session: string
  key: string
  ticket: string
  fence: number
  commitId: string
  inboundId?: string
  release: boolean
}

/** I1, I3, I4: if no live session holds the key, the first live ticket whose message is not committed gets it. */
export function grantNext(
  state: TurnMachineState,
  keyName: string,
  key: KeyState,
  now: number,
  effects: TurnEffect[],
  asking?: string,
): void {
  if (key.holder) {
    if (liveSession(state, key.holder.session, now) || state.broken.has('dead-holder')) return
    endGrant(state, keyName, key)
  }
  for (let next = key.queue.shift(); next; next = key.queue.shift()) {
    const session = liveSession(state, next.session, now)
    if (!session && !state.broken.has('dead-tickets')) continue
    if (isCommitted(state, key, next.dedupeId, now)) {
      effects.push({ type: 'duplicate', session: next.session, key: keyName, ticket: next.ticket })
      continue
    }
    grantTo(state, keyName, key, next, now, effects, asking)
    break
  }
  noteIdle(state, keyName, key)
}

function grantTo(
  state: TurnMachineState,
  keyName: string,
  key: KeyState,
  next: QueuedTicket,
  now: number,
  effects: TurnEffect[],
  asking?: string,
): void {
  const fence = nextFence(state, key, now)
  const grant: Grant = { key: keyName, ticket: next.ticket, fence, previousHolder: key.previousHolder }
  key.holder = { session: next.session, grant }
  key.previousHolder = next.session
  key.lastFence = fence
  raiseFloor(state, fence)
  state.sessions.get(next.session)?.held.set(keyName, grant)
  if (next.ticket !== asking) effects.push({ type: 'granted', session: next.session, grant })
}

/** A ticket that meets a free key with nobody in line: the common case, without any line. */
export function grantAtOnce(
  state: TurnMachineState,
  keyName: string,
  key: KeyState,
  ticket: QueuedTicket,
  now: number,
): void {
  grantTo(state, keyName, key, ticket, now, [], ticket.ticket)
  noteIdle(state, keyName, key)
}

/** I6: grows over expiry, eviction, restarts, a clock that steps back and a failover that lost writes. */
function nextFence(state: TurnMachineState, key: KeyState, now: number): number {
  const floor = state.broken.has('fence-floor') ? 0 : state.floor
  const clock = state.broken.has('fence-floor') ? 0 : Math.floor(now * 1000)
  return Math.max(key.lastFence + 1, floor + 1, clock)
}

export function raiseFloor(state: TurnMachineState, fence: number): void {
  if (fence > state.floor) state.floor = fence
}

export function liveSession(state: TurnMachineState, name: string, now: number): SessionState | undefined {
  const session = state.sessions.get(name)
  return session && session.expiresAt > now ? session : undefined
}

export function holds(
  state: TurnMachineState,
  key: KeyState,
  event: { session: string; fence: number },
): boolean {
  if (!key.holder) return false
  if (state.broken.has('fence-check')) return true
  return key.holder.grant.fence === event.fence && key.holder.session === event.session
}

export function endGrant(state: TurnMachineState, keyName: string, key: KeyState): void {
  if (!key.holder) return
  state.sessions.get(key.holder.session)?.held.delete(keyName)
  key.holder = null
}

export function endSession(
  state: TurnMachineState,
  session: SessionState,
  now: number,
  effects: TurnEffect[],
): void {
  state.sessions.delete(session.session)
  for (const keyName of session.held.keys()) {
    const key = state.keys.get(keyName)
    if (key?.holder?.session !== session.session) continue
    key.holder = null
    grantNext(state, keyName, key, now, effects)
  }
}

export function answerFor(
  state: TurnMachineState,
  keyName: string,
  key: KeyState,
  ticket: string,
  now: number,
  fresh: boolean,
): TakeDecision {
  const grant = key.holder?.grant
  if (grant?.ticket === ticket) return { outcome: 'granted', grant, fresh }
  return key.queue.has(ticket) ? queuedBehind(state, key, now) : { outcome: 'duplicate' }
}

export function queuedBehind(
  state: TurnMachineState,
  key: KeyState,
  now: number,
): { outcome: 'queued'; holder: string | null; holderLeftMs: number } {
  const holder = key.holder ? state.sessions.get(key.holder.session) : undefined
  return {
    outcome: 'queued',
    holder: key.holder?.session ?? null,
    holderLeftMs: holder ? Math.max(0, holder.expiresAt - now) : 0,
  }
}

export function isCommitted(
  state: TurnMachineState,
  key: KeyState,
  id: string | undefined,
  now: number,
): boolean {
  if (id === undefined || state.broken.has('dedupe')) return false
  return (key.committed?.get(id) ?? 0) > now
}

export function noteCommitted(state: TurnMachineState, key: KeyState, id: string, now: number): void {
  key.committed ??= new Map()
  key.committed.delete(id)
  key.committed.set(id, now + state.limits.dedupeMs)
  for (const [oldest, until] of key.committed) {
    if (until > now && key.committed.size <= state.limits.dedupePerKey) break
    key.committed.delete(oldest)
  }
}

export function noteReceipt(
  state: TurnMachineState,
  key: KeyState,
  event: CommitEvent,
  result: CommitResult,
  now: number,
): void {
  const leaseMs = state.sessions.get(event.session)?.leaseMs ?? 0
  key.receipts ??= new Map()
  key.receipts.delete(event.ticket)
  key.receipts.set(event.ticket, { commitId: event.commitId, result, expiresAt: now + 2 * leaseMs })
  for (const [ticket, receipt] of key.receipts) {
    if (receipt.expiresAt > now) break
    key.receipts.delete(ticket)
  }
}

export function noteIdle(state: TurnMachineState, keyName: string, key: KeyState): void {
  if (key.holder === null && key.queue.size === 0) state.idle.add(keyName)
  else state.idle.delete(keyName)
}
