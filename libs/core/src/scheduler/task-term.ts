/**
 * One durable task under one leadership: from the election to the loss or the stop.
 *
 *   deciding   nextStep says what to do. Left when the term is over (leadership lost, or stopping).
 *   waiting    for the next occurrence or attempt; at most a minute at a time, as the time of day may be set.
 *   claiming   the claim is written, fenced, before the function is called: whoever comes after knows of it.
 *   running    the function runs. A loss or a late stop aborts its signal; its end is waited for all the same, so that a
 *              task never overlaps itself within a process.
 *   recording  done, failed, or given back. Only while the leadership is held; repeated until the store answers.
 */
import type { Clock, Timer } from '../contracts/clock.js'
import type { Leadership } from '../contracts/coordinator.js'
import { LeaseLostError, StoreError, TaskFailedError } from '../contracts/errors.js'
import type { Logger } from '../contracts/logger.js'
import { nextStep, type Claim, type TaskState } from './due.js'
import type { Occurrences } from './occurrences.js'
import type { TaskPolicy } from './options.js'
import { TaskContext } from './task-context.js'
import type { TaskRow } from './task-row.js'

export type TaskFunction = (task: TaskContext) => unknown

export interface TermHost {
  readonly clock: Clock
  readonly logger: Logger
  /** What a task's sends through the bot are checked by. */
  runIn(assertHeld: () => void, fn: () => unknown): unknown
  report(error: unknown): void
  missed(missed: { id: string; from: Date; to: Date }): void
  lost(key: string, error: LeaseLostError): void
}

export interface TaskDefinition {
  id: string
  when: Occurrences
  policy: TaskPolicy
  fn: TaskFunction
}

const LONGEST_WAIT_MS = 60_000
const FIRST_RETRY_MS = 250
const LONGEST_RETRY_MS = 5000

export class TaskTerm {
  /** Settles when nothing of it runs any more. */
  readonly over: Promise<void>
  private state: TaskState | null = null
  private quitting = false
  private abandoned = false
  private refusals = 0
  private wake: () => void = () => undefined
  /** Why runs may not go on; their signal's reason. */
  private ended: Error | null = null
  /** Of the run under way. */
  private cut: AbortController | null = null

  /** @param former what must have ended before: runs that outlived their leadership. */
  constructor(
    private readonly host: TermHost,
    private readonly task: TaskDefinition,
    private readonly row: TaskRow,
    readonly leadership: Leadership,
    former: Promise<unknown>[],
  ) {
    if (leadership.signal.aborted) this.lose()
    this.over = this.live(former)
  }

  get id(): string {
    return this.task.id
  }

  /** Begins nothing more; a run under way goes on. */
  quit(): void {
    this.quitting = true
    this.wake()
  }

  /** Tells a run under way to end: the bot stops. */
  interrupt(): void {
    this.end(new LeaseLostError(this.row.key, 'stopped', { fence: this.leadership.fence }))
  }

  /** Nothing is written any more. */
  abandon(): void {
    this.abandoned = true
    this.wake()
  }

  /** The leadership is over: a run under way may no longer act. */
  lose(): void {
    this.quit()
    this.end(this.loss)
  }

  private get loss(): LeaseLostError {
    const { signal, fence } = this.leadership
    const reason: unknown = signal.reason
    return reason instanceof LeaseLostError ? reason : new LeaseLostError(this.row.key, 'stopped', { fence })
  }

  private end(reason: Error): void {
    this.ended ??= reason
    this.cut?.abort(this.ended)
  }

  private get holds(): boolean {
    if (this.abandoned) return false
    try {
      this.leadership.assertHeld()
      return true
    } catch {
      // Whoever held it is told by its signal; here it only means that there is nothing more to do.
      return false
    }
  }

  /** Never rejects. */
  private async live(former: Promise<unknown>[]): Promise<void> {
    await Promise.all(former)
    try {
      await this.load()
      while (!this.quitting && this.holds) await this.step()
    } catch (error) {
      this.host.report(error)
    }
  }

  private async step(): Promise<void> {
    const { clock } = this.host
    const { id, when, policy } = this.task
    const step = nextStep(this.state, when, policy, clock.now())
    switch (step.type) {
      case 'wait':
        return this.pause(Math.min(step.until - clock.now(), LONGEST_WAIT_MS))
      case 'end':
        return this.quit()
      case 'begin':
        this.sayWhy(step.why)
        return void (await this.save(step.state))
      case 'leave-out':
        if (await this.save(step.state))
          this.host.missed({ id, from: new Date(step.from), to: new Date(step.to) })
        return
      case 'give-up':
        if (await this.save(step.state)) this.fail(step.occurrence, step.attempts, null, abandonedError())
        return
      case 'run':
        return this.run(step.occurrence, step.attempt)
    }
  }

  private sayWhy(why: 'new' | 'plan' | 'clock'): void {
    if (why === 'new') return
    const text = {
      plan: 'the schedule of this task has changed: it begins anew',
      clock: 'the time of day went far back: this task begins anew',
    }[why]
    this.host.logger.warn({ task: this.task.id, plan: this.task.when.plan, before: this.state?.plan }, text)
  }

  private async run(occurrence: number, attempt: number): Promise<void> {
    if (this.state === null || !(await this.save({ ...this.state, claim: { occurrence, attempt } }))) return
    try {
      await this.call(occurrence, attempt)
    } catch (error) {
      return this.failed(occurrence, attempt, error)
    }
    if (this.holds) await this.save({ ...this.state, settled: occurrence, claim: null })
    else this.tellLoss()
  }

  private async call(occurrence: number, attempt: number): Promise<void> {
    // One for each run: what listens to it goes with it.
    const { signal } = (this.cut = new AbortController())
    const assertHeld = () => {
      if (this.ended !== null) throw this.ended
      this.leadership.assertHeld()
    }
    const { fence } = this.leadership
    const context = new TaskContext({ id: this.task.id, occurrence, attempt, fence, signal, assertHeld })
    // The claim took a moment to be written.
    assertHeld()
    await this.host.runIn(assertHeld, () => this.task.fn(context))
  }

  private async failed(occurrence: number, attempt: number, error: unknown): Promise<void> {
    if (!this.holds || this.state === null) return this.tellLoss()
    const { maxAttempts, retryMs, maxRetryMs } = this.task.policy
    const now = this.host.clock.now()
    // Cut by the stop: no attempt, and whoever leads next goes on at once.
    if (this.ended !== null) return this.giveBack({ occurrence, attempt: attempt - 1, retryAt: now })
    if (attempt >= maxAttempts) {
      this.fail(occurrence, attempt, null, error)
      return void (await this.save({ ...this.state, settled: occurrence, claim: null }))
    }
    const pauseMs = Math.min(retryMs * 2 ** (attempt - 1), maxRetryMs)
    this.fail(occurrence, attempt, pauseMs, error)
    return this.giveBack({ occurrence, attempt, retryAt: now + pauseMs })
  }

  private async giveBack(claim: Claim): Promise<void> {
    if (this.state !== null) await this.save({ ...this.state, claim })
  }

  private fail(occurrence: number, attempts: number, retryInMs: number | null, cause: unknown): void {
    this.host.report(new TaskFailedError(this.task.id, new Date(occurrence), attempts, retryInMs, cause))
  }

  private tellLoss(): void {
    this.host.lost(this.row.key, this.loss)
  }

  private async load(): Promise<void> {
    this.state = (await this.insist(() => this.row.load())) ?? null
  }

  /** @returns false if it was not stored: the leadership is lost, or somebody else has written and was read. */
  private async save(state: TaskState): Promise<boolean> {
    const saved = await this.insist(() => this.row.save(state, this.leadership.fence))
    if (saved === true) {
      this.state = state
      this.refusals = 0
      return true
    }
    if (saved === undefined) return false
    this.refusals += 1
    // Once is a write of the leader before that was still on its way. More often, somebody has a higher fence.
    if (this.refusals === 2) this.host.report(this.refusedError())
    if (this.refusals >= 2) await this.pause(LONGEST_RETRY_MS)
    await this.load()
    return false
  }

  private refusedError(): StoreError {
    return new StoreError(
      `The store refuses what fence ${this.leadership.fence} writes about "${this.row.key}": a later leader has written, or scheduler.lease was changed for one whose fences are lower.`,
      { store: 'scheduler', operation: 'setCheckpointIf', key: this.row.key },
      { retryable: true },
    )
  }

  /** Repeats a call until the store answers; undefined once the leadership is lost. */
  private async insist<T>(call: () => Promise<T>): Promise<T | undefined> {
    for (let pauseMs = FIRST_RETRY_MS; this.holds; pauseMs = Math.min(pauseMs * 2, LONGEST_RETRY_MS)) {
      try {
        return await call()
      } catch (error) {
        if (pauseMs === FIRST_RETRY_MS) this.host.report(error)
        else this.host.logger.debug({ err: error, task: this.task.id }, 'the store does not answer yet')
      }
      await this.pause(pauseMs, true)
    }
    return undefined
  }

  /** Until the time is over, or the term; a `stubborn` one is not cut by a stop. */
  private pause(ms: number, stubborn = false): Promise<void> {
    return new Promise((resolve) => {
      const timer: Timer = this.host.clock.setTimeout(resolve, ms)
      this.wake = () => {
        if (stubborn && this.holds) return
        timer.cancel()
        resolve()
      }
      if (this.quitting) this.wake()
    })
  }
}

function abandonedError(): Error {
  return new Error('Each replica that began it died, or lost its leadership, before it had ended.')
}
