/**
 * What a task is to do next: a pure decision on what is remembered of it, its plan, its policy and the time of day.
 *
 *   remembered                      then
 *   a claim that was abandoned      run it again at once, or give it up after `maxAttempts`
 *   a claim that failed             run it again when its pause is over
 *   nothing claimed                 the oldest occurrence in time; none: what `catchUp` says of those that were missed;
 *                                   none: wait for the next one
 *
 * An occurrence that was begun is ended, however late: `catchUp` is about those that nobody began.
 */
import type { Occurrences } from './occurrences.js'
import type { TaskPolicy } from './options.js'

/** What the store remembers of a task. */
export interface TaskState {
  /** `Occurrences.plan` that it was written under. */
  plan: string
  /** Every occurrence up to this instant is over: done, given up or left out. */
  settled: number
  /** The occurrence somebody has begun and not ended. */
  claim: Claim | null
}

export interface Claim {
  occurrence: number
  /** How often it was begun. */
  attempt: number
  /** It failed, or was given back: to be begun again from then on. Absent: somebody is at it, or died at it. */
  retryAt?: number
}

export type Step =
  | { type: 'wait'; until: number }
  /** No further occurrence, ever. */
  | { type: 'end' }
  /** Occurrences from `from` to `to` are left out; `state` says so. */
  | { type: 'leave-out'; from: number; to: number; state: TaskState }
  | { type: 'give-up'; occurrence: number; attempts: number; state: TaskState }
  | { type: 'run'; occurrence: number; attempt: number }
  /** The task is new, its plan has changed, or the time of day went far back: it begins now. */
  | { type: 'begin'; why: 'new' | 'plan' | 'clock'; state: TaskState }

const DAY = 24 * 60 * 60_000

/** Call again at once after `leave-out`, `give-up` and `begin`, with their state. */
export function nextStep(state: TaskState | null, when: Occurrences, policy: TaskPolicy, now: number): Step {
  const anew = (why: 'new' | 'plan' | 'clock'): Step => ({
    type: 'begin',
    why,
    state: { plan: when.plan, settled: now, claim: null },
  })
  if (state === null) return anew('new')
  if (state.plan !== when.plan) return anew('plan')
  if (state.claim !== null) return goOn(state, state.claim, policy, now)
  const next = when.next(state.settled)
  if (next === null) return { type: 'end' }
  // Another replica's clock may be a little ahead; by more than that, somebody has set the time of day.
  if (state.settled > now + (when.everyMs === null ? DAY : policy.graceMs)) return anew('clock')
  if (next > now) return { type: 'wait', until: next }
  const chosen = choose(state.settled, next, when, policy, now)
  // Of an interval the one stands for those before it; else they are left out first, and that is told.
  const standsForAll = when.everyMs !== null && policy.catchUp !== 'all'
  if (chosen !== null && (chosen === next || standsForAll))
    return { type: 'run', occurrence: chosen, attempt: 1 }
  const settled = chosen === null ? lastBefore(when, state.settled, now + 1, next) : chosen - 1
  const to = chosen === null ? settled : lastBefore(when, state.settled, chosen, next)
  // For intervals the settled instant is always an occurrence: the grid is counted from it.
  return {
    type: 'leave-out',
    from: next,
    to,
    state: { ...state, settled: when.everyMs === null ? settled : to },
  }
}

function goOn(state: TaskState, claim: Claim, policy: TaskPolicy, now: number): Step {
  const { occurrence, attempt, retryAt } = claim
  if (attempt >= policy.maxAttempts) {
    const over = { ...state, settled: occurrence, claim: null }
    return { type: 'give-up', occurrence, attempts: attempt, state: over }
  }
  // No pause is longer than this: one that looks longer was written by a clock that was ahead.
  const until = Math.min(retryAt ?? now, now + policy.maxRetryMs)
  return until > now ? { type: 'wait', until } : { type: 'run', occurrence, attempt: attempt + 1 }
}

/** Of what is due (there is something) the one to run now; null: none. */
function choose(
  settled: number,
  next: number,
  when: Occurrences,
  { catchUp, graceMs, maxCatchUp }: TaskPolicy,
  now: number,
): number | null {
  const inTimeFrom = now - graceMs
  if (catchUp !== 'all' && when.everyMs !== null) {
    // An interval says how often, not when: of several that are due one is enough.
    const [latest = next] = when.last(1, settled, now + 1)
    return latest >= inTimeFrom || catchUp === 'last' ? latest : null
  }
  if (next >= inTimeFrom) return next
  if (catchUp === 'all') return when.last(maxCatchUp, settled, inTimeFrom).at(-1) ?? next
  const [missed = next] = when.last(1, settled, inTimeFrom)
  const inTime = when.next(missed)
  if (inTime !== null && inTime <= now) return inTime
  return catchUp === 'last' ? missed : null
}

function lastBefore(when: Occurrences, settled: number, before: number, fallback: number): number {
  return when.last(1, settled, before)[0] ?? fallback
}
