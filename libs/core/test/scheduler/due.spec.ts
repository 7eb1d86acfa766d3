/** What a task does next: catching up, the grace, claims that somebody left behind. */
import { describe, expect, it } from '@jest/globals'
import { nextStep, type Step, type TaskState } from '../../src/scheduler/due.js'
import { cron, interval, type Occurrences } from '../../src/scheduler/occurrences.js'
import type { TaskPolicy } from '../../src/scheduler/options.js'

const NINE = Date.UTC(2030, 0, 1, 9)
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const hourly = cron('0 * * * *', 'UTC')
const policy = (given: Partial<TaskPolicy> = {}): TaskPolicy => ({
  ...{ catchUp: 'last', graceMs: MINUTE, maxCatchUp: 3, maxAttempts: 2, retryMs: 1000, maxRetryMs: MINUTE },
  ...given,
})
const since = (settled: number, when: Occurrences = hourly): TaskState => ({
  plan: when.plan,
  settled,
  claim: null,
})

/** What is done at that time, and what is left out, until there is something to wait for. */
function unfold(state: TaskState, when: Occurrences, rules: TaskPolicy, now: number) {
  const ran: number[] = []
  const left: [number, number][] = []
  for (let known = state; ;) {
    const step: Step = nextStep(known, when, rules, now)
    if (step.type === 'run') {
      ran.push((step.occurrence - NINE) / HOUR)
      known = { ...known, settled: step.occurrence, claim: null }
    } else if (step.type === 'leave-out') {
      left.push([(step.from - NINE) / HOUR, (step.to - NINE) / HOUR])
      known = step.state
    } else return { ran, left, step }
  }
}

describe('J1: what nobody ran in time', () => {
  // Settled at nine; it is 14:00:30 now. 10 to 13 were missed, 14 is in time.
  const now = NINE + 5 * HOUR + 30_000
  it.each([
    ['skip', [5], [[1, 4]]],
    ['last', [5], [[1, 4]]],
    ['all', [2, 3, 4, 5], [[1, 1]]],
  ] as const)('%s, with one that is in time', (catchUp, ran, left) => {
    const all = unfold(since(NINE), hourly, policy({ catchUp }), now)
    expect(all).toEqual({ ran, left, step: { type: 'wait', until: NINE + 6 * HOUR } })
  })

  it.each([
    ['skip', [], [[1, 5]]],
    ['last', [5], [[1, 4]]],
    ['all', [3, 4, 5], [[1, 2]]],
  ] as const)('%s, with none that is in time', (catchUp, ran, left) => {
    const all = unfold(since(NINE), hourly, policy({ catchUp }), now + 10 * MINUTE)
    expect(all).toEqual({ ran, left, step: { type: 'wait', until: NINE + 6 * HOUR } })
  })

  it.each(['skip', 'last', 'all'] as const)('%s: each one within the grace is run', (catchUp) => {
    const all = unfold(since(NINE), hourly, policy({ catchUp, graceMs: 3 * HOUR }), NINE + 3 * HOUR)
    expect(all).toMatchObject({ ran: [1, 2, 3], left: [] })
  })

  it('of an interval the latest one stands for all, unless all are wanted', () => {
    const when = interval(HOUR)
    const at = NINE + 3.5 * HOUR
    const end = { step: { type: 'wait', until: NINE + 4 * HOUR } }
    expect(unfold(since(NINE, when), when, policy(), at)).toEqual({ ran: [3], left: [], ...end })
    expect(unfold(since(NINE, when), when, policy({ catchUp: 'skip' }), at)).toEqual({
      ran: [],
      left: [[1, 3]],
      ...end,
    })
    const all = unfold(since(NINE, when), when, policy({ catchUp: 'all' }), at)
    expect(all).toEqual({ ran: [1, 2, 3], left: [], ...end })
  })

  it('a year of seconds is looked at no longer than an hour of them', () => {
    const when = cron('* * * * * *', 'UTC')
    const began = performance.now()
    const first = nextStep(since(NINE - 365 * 24 * HOUR, when), when, policy({ catchUp: 'all' }), NINE)
    expect(first).toMatchObject({ type: 'leave-out', to: NINE - MINUTE - 4000 })
    expect(performance.now() - began).toBeLessThan(500)
  })
})

describe('J1: what somebody had begun', () => {
  const begun = (claim: TaskState['claim']): TaskState => ({ ...since(NINE), claim })
  const occurrence = NINE + HOUR

  it('abandoned, it is run again, however late, and whatever the policy', () => {
    const state = begun({ occurrence, attempt: 1 })
    const step = nextStep(state, hourly, policy({ catchUp: 'skip' }), NINE + 9 * HOUR)
    expect(step).toEqual({ type: 'run', occurrence, attempt: 2 })
  })

  it('abandoned again and again, it is given up', () => {
    const step = nextStep(begun({ occurrence, attempt: 2 }), hourly, policy(), NINE + 2 * HOUR)
    expect(step).toMatchObject({
      type: 'give-up',
      occurrence,
      attempts: 2,
      state: { settled: occurrence, claim: null },
    })
  })

  it('failed, it waits for its pause, at most the longest one', () => {
    const now = NINE + HOUR
    const wait = (retryAt: number) =>
      nextStep(begun({ occurrence, attempt: 1, retryAt }), hourly, policy(), now)
    expect(wait(now + 5000)).toEqual({ type: 'wait', until: now + 5000 })
    expect(wait(now + HOUR)).toEqual({ type: 'wait', until: now + MINUTE })
    expect(wait(now)).toEqual({ type: 'run', occurrence, attempt: 2 })
  })
})

describe('J1: beginnings', () => {
  it('a task that is new, or has another plan, begins now', () => {
    expect(nextStep(null, hourly, policy(), NINE)).toMatchObject({
      type: 'begin',
      why: 'new',
      state: since(NINE),
    })
    const other = { ...since(NINE), plan: 'another', claim: { occurrence: 1, attempt: 1 } }
    expect(nextStep(other, hourly, policy(), NINE + HOUR)).toMatchObject({
      why: 'plan',
      state: since(NINE + HOUR),
    })
  })

  it('a clock that went back a little repeats nothing; one that went far back does not stop the task for good', () => {
    expect(nextStep(since(NINE), hourly, policy(), NINE - 2 * HOUR)).toEqual({
      type: 'wait',
      until: NINE + HOUR,
    })
    expect(nextStep(since(NINE), hourly, policy(), NINE - 25 * HOUR)).toMatchObject({
      type: 'begin',
      why: 'clock',
    })
    const when = interval(1000)
    expect(nextStep(since(NINE, when), when, policy(), NINE - 30_000)).toMatchObject({ type: 'wait' })
    expect(nextStep(since(NINE, when), when, policy(), NINE - HOUR)).toMatchObject({
      type: 'begin',
      why: 'clock',
    })
  })
})
