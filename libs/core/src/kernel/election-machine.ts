/**
 * Where one candidate stands in one election. A leadership is a turn of the key `lead:<name>`: the ticket in its
 * line is the candidacy, the grant is the election, and both live exactly as long as the session.
 *
 * States:
 * - `standing`: a ticket is being taken. `granted` → leading; `queued` → following.
 * - `following`: somebody else leads; the ticket waits. `granted` → leading; `ticket-lost` → standing.
 * - `leading`: `lost` → standing; `resigned` → pausing.
 * - `pausing`: does not stand for a while (P3). `pause-over` → standing.
 * - `stopped`: for good. Everything is ignored, and a grant that still arrives is given back.
 * Ignored: `queued` while following (told once), `lost` or `resigned` while not leading.
 */
import type { FollowReason } from '../contracts/coordinator.js'

export type ElectionState = 'standing' | 'following' | 'leading' | 'pausing' | 'stopped'

export type ElectionEvent =
  | { type: 'granted' }
  | { type: 'queued' }
  | { type: 'ticket-lost' }
  | { type: 'lost' }
  | { type: 'resigned'; reason: FollowReason }
  | { type: 'pause-over' }
  | { type: 'stop' }

export type ElectionEffect =
  | { type: 'lead' }
  | { type: 'follow'; reason: FollowReason }
  /** Take a ticket. */
  | { type: 'stand' }
  /** Give up the ticket that waits or is being taken. */
  | { type: 'withdraw' }
  /** End the leadership, so that a standby gets it at once. */
  | { type: 'release' }
  /** Start the pause. */
  | { type: 'pause' }

export interface ElectionStep {
  state: ElectionState
  effects: ElectionEffect[]
}

export function electionStep(state: ElectionState, event: ElectionEvent): ElectionStep {
  if (state === 'stopped') {
    return { state, effects: event.type === 'granted' ? [{ type: 'release' }] : [] }
  }
  switch (event.type) {
    case 'granted':
      if (state === 'pausing') return { state, effects: [{ type: 'release' }] }
      return state === 'leading' ? { state, effects: [] } : { state: 'leading', effects: [{ type: 'lead' }] }
    case 'queued':
      return state === 'standing'
        ? { state: 'following', effects: [{ type: 'follow', reason: 'standby' }] }
        : { state, effects: [] }
    case 'ticket-lost':
      return state === 'standing' || state === 'following'
        ? { state: 'standing', effects: [{ type: 'stand' }] }
        : { state, effects: [] }
    case 'lost':
      return state === 'leading'
        ? { state: 'standing', effects: [{ type: 'follow', reason: 'lost' }, { type: 'stand' }] }
        : { state, effects: [] }
    case 'resigned':
      return resign(state, event.reason)
    case 'pause-over':
      return state === 'pausing'
        ? { state: 'standing', effects: [{ type: 'stand' }] }
        : { state, effects: [] }
    case 'stop':
      return stop(state)
  }
}

function resign(state: ElectionState, reason: FollowReason): ElectionStep {
  if (state !== 'leading') return { state, effects: [] }
  return {
    state: 'pausing',
    effects: [{ type: 'release' }, { type: 'follow', reason }, { type: 'pause' }],
  }
}

function stop(state: ElectionState): ElectionStep {
  const last: ElectionEffect = state === 'leading' ? { type: 'release' } : { type: 'withdraw' }
  return { state: 'stopped', effects: [last, { type: 'follow', reason: 'stopped' }] }
}
