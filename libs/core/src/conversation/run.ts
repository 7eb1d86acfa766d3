/**
 * One conversation in memory: the copy of this replica.
 *
 * States: `running` (a step's code runs under a span) → `waiting` (a question is open, no turn is held) → `running`
 * … → `gone` (ended, left, failed, suspended or stale; never left again).
 * - running → waiting: `c.ask` has said its question; the wait is staged for the commit that ends the span.
 * - waiting → running: a message (`deliver`), a wait's timeout or a `c.idle` watcher, each under a turn of its own.
 * - running → gone: the last step returned, `c.end()`, an uncaught error, `suspend`.
 * - waiting → gone: `drop`, `leave`, stop.
 * Ignored: a timer of a wait that is no longer open; everything that the code of a frame does after it was revoked.
 */
import { ConfigError, LeaseLostError, WaitTimeoutError } from '../contracts/errors.js'
import type { Message } from '../contracts/message.js'
import { parseChatKey } from '../kernel/chat-key.js'
import { endingOf, withholdsAck, type AnswerHeld } from '../kernel/settle-policy.js'
import { answerOf, keptForm, type Answer } from './answers.js'
import { Directive } from './contexts.js'
import type { Definition, Step } from './definitions.js'
import { Frame, type FrameHost, type Outcome, type Resume } from './frame.js'
import { Ledger, type Standing, type WaitMark } from './ledger.js'
import type { ConversationHost, TurnScope } from './port.js'
import { Settling, Wait, type Watcher } from './wait.js'

/** Steps a run may go through without waiting: more is taken for a loop of gotos. */
const MAX_HOPS = 1_000

export interface RunStart {
  definition: Definition
  state: object
  initial: object
  visit: number
  stepName: string | null
  /** It comes from the store. */
  touched: boolean
  /** Checkpoints are kept of it. */
  stores: boolean
  revision: string | null
  inbox?: Answer[]
  actingRecordId?: string | null
}

export interface RunOwner {
  readonly host: ConversationHost
  /** False if the run's copy is stale under this span. */
  isCurrent(run: Run, scope: TurnScope): boolean
  /** It is gone; nothing of it runs for the chat any more. */
  gone(run: Run): void
}

export class Run implements FrameHost, Standing {
  readonly host: ConversationHost
  readonly definition: Definition
  readonly state: object
  readonly initial: object
  readonly chatId: string
  readonly ledger: Ledger
  stepName: string | null
  visit: number
  scope: TurnScope | null
  /** Confirmed revision of the chat's checkpoint row. */
  revision: string | null
  actingRecordId: string | null
  #frame: Frame | null = null
  #wait: Wait | null = null
  #inbox: Answer[]
  #answer: AnswerHeld = 'none'
  #message: Message | null
  #context: { scope: TurnScope; value: unknown } | null = null
  #busy = new Settling()
  #turnWanted: (() => void) | null = null
  #hops = 0
  #gone = false

  constructor(
    private readonly owner: RunOwner,
    readonly key: string,
    scope: TurnScope,
    start: RunStart,
  ) {
    this.host = owner.host
    this.definition = start.definition
    this.state = start.state
    this.initial = start.initial
    this.visit = start.visit
    this.stepName = start.stepName
    this.revision = start.revision
    this.scope = scope
    this.actingRecordId = start.actingRecordId ?? null
    this.#inbox = start.inbox ?? []
    this.#message = answerOf(scope)?.message ?? null
    this.chatId = scope.message?.chatId ?? parseChatKey(key)?.chatId ?? key
    this.ledger = new Ledger(this.host, this, start.stores, scope.coordinated, start.touched, (error) =>
      this.#backgroundFailed(error),
    )
  }

  /** Settles when it waits or is gone; null if nothing runs. */
  get running(): Promise<void> | null {
    return this.#gone ? null : this.#busy.promise
  }

  /** It waits on a first question that the store holds: another copy can be made at any time. */
  get evictable(): boolean {
    const { mark } = this.#wait ?? {}
    return (
      this.ledger.keeps &&
      !this.ledger.unplain &&
      this.running === null &&
      this.revision !== null &&
      mark?.question === 0 &&
      mark.timeoutMs === null &&
      this.#frame?.watchers.size === 0
    )
  }

  get isGone(): boolean {
    return this.#gone
  }

  /** Runs on from `stepName`. Does not wait for it. */
  start(resume: Resume | null): void {
    if (resume?.kept === false) {
      this.#noteAnswer(resume.given, { question: 0, sends: resume.skipSends, timeoutMs: null })
    }
    void this.#drive(this.#step(this.stepName), resume)
  }

  /** Gives it the span's message: the answer it waits for, or kept for its next question. */
  deliver(scope: TurnScope): void {
    const answer = answerOf(scope)
    if (answer === null || this.#gone) return
    const wait = this.#wait
    this.#begin(scope)
    if (wait === null) {
      this.#inbox.push(answer)
      this.#turnWanted?.()
      return
    }
    this.#closeWait()
    wait.resolve(answer)
  }

  /** T4: stops what runs. What is owed was staged when it arose (H7); here it is only said what no checkpoint holds. */
  suspend(error: LeaseLostError): void {
    if (this.running === null) return
    // A message that waits for the next question is in no checkpoint either.
    const answer = this.#inbox.length > 0 ? 'unkept' : this.#answer
    const durable = this.scope?.durable === true
    if (withholdsAck({ reason: error.reason, answer, durable })) this.scope?.withholdAck()
    this.vanish(error)
  }

  /** Discards the copy; the store is left as it is. */
  vanish(error: LeaseLostError): void {
    if (this.#gone) return
    this.#gone = true
    this.#closeWait()
    this.ledger.close()
    this.#frame?.revoke(error)
    this.#busy.done()
    this.owner.gone(this)
  }

  /** Ends it: what it left in the store is removed with the span's commit. */
  end(scope: TurnScope, error: LeaseLostError): void {
    if (this.#gone) return
    this.ledger.stageEnd(scope)
    this.vanish(error)
  }

  message(): Message {
    if (this.#message !== null) return this.#message
    throw new ConfigError('There is no message: this conversation was not entered by one.', {
      option: 'c.message',
    })
  }

  handlerContext(): unknown {
    const { scope } = this
    if (scope === null) return undefined
    if (this.#context?.scope !== scope) this.#context = { scope, value: this.host.contextFor(scope) }
    return this.#context.value
  }

  takeHeld(): Answer | null {
    const held = this.#inbox.shift() ?? null
    if (held !== null) this.actingRecordId = null
    return held
  }

  async wait(frame: Frame, mark: WaitMark): Promise<Answer> {
    await frame.sent()
    await this.ledger.idle()
    const { scope } = this
    if (frame.act.revoked !== null) throw frame.act.revoked
    if (scope === null) throw new LeaseLostError(this.key, 'revoked')
    scope.assertLive()
    this.ledger.stageWait(scope, mark)
    this.#answer = 'none'
    this.#hops = 0
    return new Promise((resolve, reject) => {
      const wait = new Wait(frame.watchers, mark, resolve, reject)
      this.#wait = wait
      wait.arm(
        this.host.clock,
        () => this.#wake(wait, `wait-${this.visit}-${mark.question}`, (span) => this.#timedOut(wait, span)),
        (watcher) =>
          this.#wake(wait, `idle-${this.visit}-${watcher.id}`, (span) => this.#idle(wait, watcher, span)),
      )
      this.#busy.done()
    })
  }

  async answered(frame: Frame, answer: Answer, mark: WaitMark, noted: boolean): Promise<void> {
    this.#message = answer.message
    if (!noted) this.#noteAnswer(answer, mark)
    // A step of work may take long from here on; others get the moment that is owed.
    if (frame.step?.kind === 'do') await this.ledger.flush()
  }

  beforeLongWork(): Promise<void> {
    return this.ledger.flush()
  }

  /** H7: what a checkpoint can hold of an answer that the step has not worked off. */
  #noteAnswer(answer: Answer, mark: WaitMark): void {
    this.#answer = 'unkept'
    if (!this.ledger.keeps || mark.question !== 0) return
    const form = keptForm(answer, this.scope?.durable === true, this.host.options.maxAnswerBytes)
    // Too large: the step starts over elsewhere, so its mark must not take the next message for the answer.
    if (form === null) this.ledger.owe()
    else this.ledger.owe(form, mark)
    if (form !== null && !this.ledger.unplain) this.#answer = 'kept'
  }

  async #drive(first: Step | null, resume: Resume | null): Promise<void> {
    try {
      for (let step = first, how = resume; ; how = null) {
        const frame = new Frame(this, step, how)
        frame.act.current = this.scope
        this.#frame = frame
        if (step?.kind === 'do') await this.ledger.flush()
        if (this.#gone) return
        const outcome = await frame.execute((c) =>
          step === null ? this.definition.run(c, c.ctx) : step.run(c),
        )
        if (this.#gone) return
        frame.close('value' in outcome ? outcome.value : undefined)
        await frame.sent()
        if (this.#busy.promise === null) await this.#regainTurn()
        if (this.#isGone()) return
        if ('error' in outcome) return await this.#failed(outcome.error)
        step = this.#next(step, outcome.value)
        if (step === null) return await this.#finish()
        this.#enterStep(step)
      }
    } catch (error) {
      await this.#failed(error)
    }
  }

  #enterStep(step: Step): void {
    if (++this.#hops > MAX_HOPS) {
      throw new ConfigError(
        `Flow "${this.definition.name}" went through ${MAX_HOPS} steps without asking anything: its gotos form a loop.`,
        { option: this.definition.name },
      )
    }
    this.stepName = step.name
    this.visit++
    this.ledger.owe()
    // The transition holds what the answer did; without a checkpoint nothing does.
    if (this.ledger.keeps && !this.ledger.unplain && this.#answer === 'unkept') this.#answer = 'kept'
  }

  #next(step: Step | null, value: unknown): Step | null {
    if (value instanceof Directive) return value.kind === 'end' ? null : this.#step(value.step)
    if (step === null) return null
    const { steps } = this.definition
    return this.#step(steps[steps.indexOf(step.name) + 1] ?? null)
  }

  #step(name: string | null): Step | null {
    return name === null ? null : (this.definition.stepsByName.get(name) ?? null)
  }

  async #finish(): Promise<void> {
    await this.ledger.idle()
    if (this.#gone || this.scope === null) return
    this.end(this.scope, new LeaseLostError(this.key, 'revoked'))
  }

  async #failed(error: unknown): Promise<void> {
    if (this.#gone) return
    const { scope } = this
    const details = { key: this.key, flow: this.definition.name, step: this.stepName, err: error }
    switch (endingOf(error, this.key)) {
      case 'lost':
        this.host.logger.warn(details, 'The turn was lost: the conversation is discarded here.')
        return this.vanish(error as LeaseLostError)
      case 'quiet':
        this.host.logger.debug(details, 'The conversation ended without an answer.')
        return this.#finish()
      case 'failed': {
        scope?.fail(error)
        // The record is tried again and finds the conversation where the store has it; after the last attempt nowhere.
        const again = scope?.durable === true && scope.recordId !== null && scope.finalAttempt !== true
        return again ? this.vanish(new LeaseLostError(this.key, 'revoked', { cause: error })) : this.#finish()
      }
    }
  }

  #backgroundFailed(error: unknown): void {
    if (error instanceof LeaseLostError) this.vanish(error)
    // Still owed: the commit that ends the span will carry it or fail with it.
    else this.host.logger.warn({ key: this.key, err: error }, 'A checkpoint could not be written yet.')
  }

  #begin(scope: TurnScope): void {
    this.scope = scope
    this.#answer = 'none'
    this.actingRecordId = null
    if (this.#frame !== null && this.#frame.act.revoked === null) this.#frame.act.current = scope
    this.#busy.begin()
  }

  #closeWait(): void {
    this.#wait?.disarm()
    this.#wait = null
  }

  /** T5: a timer acts under a turn, if this copy is still current and its wait still open then. */
  #wake(wait: Wait | null, timerId: string, act: (scope: TurnScope) => void): void {
    this.host.wake(this.key, timerId, async (scope) => {
      if (this.#gone || this.#wait !== wait) return
      if (this.owner.isCurrent(this, scope)) act(scope)
      else this.vanish(new LeaseLostError(this.key, 'superseded'))
    })
  }

  #timedOut(wait: Wait, scope: TurnScope): void {
    this.#begin(scope)
    this.#closeWait()
    wait.reject(new WaitTimeoutError(this.key, wait.mark.timeoutMs ?? 0))
  }

  #idle(wait: Wait, watcher: Watcher, scope: TurnScope): void {
    const frame = this.#frame
    if (frame === null || !frame.watchers.has(watcher)) return
    this.#begin(scope)
    void this.#runIdle(wait, watcher, frame)
  }

  async #runIdle(wait: Wait, watcher: Watcher, frame: Frame): Promise<void> {
    frame.timerOrdinal = 0
    const outcome = await frame.inScope(watcher.fire).then(
      (value): Outcome => ({ value }),
      (error: unknown): Outcome => ({ error }),
    )
    frame.timerOrdinal = null
    await frame.sent()
    if (this.#gone || this.#wait !== wait) return
    if ('value' in outcome && !(outcome.value instanceof Directive)) return this.#busy.done()
    this.#closeWait()
    frame.abandon(outcome)
  }

  /** The step went on although its question was still open, outside any turn: the rest of the run needs one. */
  async #regainTurn(): Promise<void> {
    this.#closeWait()
    await new Promise<void>((resolve) => {
      this.#turnWanted = () => {
        this.#turnWanted = null
        resolve()
      }
      this.#wake(null, `step-${this.visit}`, (scope) => {
        if (this.#turnWanted === null) return
        this.#begin(scope)
        this.#turnWanted()
      })
    })
  }

  /** After an await: TypeScript would take the earlier check for the last word. */
  #isGone(): boolean {
    return this.#gone
  }
}
