/**
 * One conversation in memory: the copy of this replica.
 *
 * States: `running` (a step's code runs under a span) → `waiting` (a question is open, no turn is held) → `running`
 * … → `gone` (ended, left, failed, suspended or stale; never left again).
 * - running → waiting: `c.ask` has said its question; the wait is staged for the commit that ends the span.
 * - waiting → running: a message (`give`), a wait's timeout or a `c.idle` watcher, each under a turn of its own.
 * - running → gone: the last step returned, `c.end()`, an uncaught error, `suspend`.
 * - waiting → gone: `drop`, `leave`, stop.
 * Ignored: a timer of a wait that is no longer open; everything that the code of a frame does after it was revoked.
 */
import type { KeptAnswer } from '../contracts/checkpoint-store.js'
import { ConfigError, LeaseLostError } from '../contracts/errors.js'
import type { Message } from '../contracts/message.js'
import { parseChatKey } from '../kernel/chat-key.js'
import { withholdsAck } from '../kernel/settle-policy.js'
import { Acting } from './acting.js'
import { answerOf, type Answer } from './answers.js'
import { nextStep, stepNamed, type Definition, type Step } from './definitions.js'
import { judgeFailure, judgeLateWrite } from './failure.js'
import { Frame, type AnswerSource, type FrameHost, type Resume } from './frame.js'
import { Ledger, type Standing, type WaitMark } from './ledger.js'
import type { ConversationHost, TurnScope } from './port.js'
import { Answers } from './run-answers.js'
import type { RunOwner, RunStart } from './run-start.js'
import { RunTimers } from './run-timers.js'
import { Settling, Wait } from './wait.js'

/** Steps a run may go through without waiting: more is taken for a loop of gotos. */
const MAX_HOPS = 1_000

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
  /** Of the last turn that served it; 0 without turns. */
  fence: number
  /** Confirmed revision of the chat's checkpoint row. */
  revision: string | null
  readonly #answers: Answers
  #frame: Frame | null = null
  #wait: Wait | null = null
  #message: Message | null
  readonly #acting: Acting
  #busy = new Settling()
  readonly #timers = new RunTimers(this)
  #hops = 0
  #gone = false

  constructor(
    private readonly owner: RunOwner<Run>,
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
    this.fence = scope.fence ?? 0
    this.#acting = new Acting(this.host, start.entered ?? answerOf(scope))
    this.#message = this.#acting.answer?.message ?? start.message ?? null
    this.chatId = scope.message?.chatId ?? parseChatKey(key)?.chatId ?? key
    this.ledger = new Ledger(this.host, this, start.stores, scope.coordinated, start.touched, (error) => {
      const lost = judgeLateWrite(this, error)
      if (lost !== null) this.vanish(lost)
    })
    this.#answers = new Answers(this, start)
  }

  /** Settles when it waits or is gone; null if nothing runs. */
  get running(): Promise<void> | null {
    return this.#gone ? null : this.#busy.promise
  }

  /** It waits where the store has it: another copy can be made at any time. */
  get evictable(): boolean {
    const { ledger, revision } = this
    return ledger.waitHolds && revision !== null && this.running === null && this.#wait?.replaceable === true
  }

  get isGone(): boolean {
    return this.#gone
  }

  /** Runs on from `stepName`. Does not wait for it. */
  start(resume: Resume | null): void {
    const given = resume !== null && 'given' in resume && !resume.kept ? resume.given : null
    this.#answers.begunWith(given, resume?.skipSends ?? 0)
    const step = stepNamed(this.definition, this.stepName)
    this.#drive(step, resume).catch((error: unknown) => this.host.report(error))
  }

  /** Gives it a message: the answer it waits for, or kept for its next question. */
  give(scope: TurnScope, answer: Answer): void {
    if (this.#gone) return
    const wait = this.#wait
    this.begin(scope)
    if (wait === null) {
      this.#answers.hold(answer)
      this.#timers.turnCame()
      return
    }
    this.closeWait()
    wait.resolve(answer)
  }

  /** Its wait is over, although its own timer has said nothing yet. */
  timeOut(scope: TurnScope): void {
    if (this.#wait !== null) this.#timers.timedOut(this.#wait, scope)
  }

  /** T4: stops what runs. What is owed was staged when it arose (H7); here it is only said what no checkpoint holds. */
  suspend(error: LeaseLostError): void {
    if (this.running === null) return
    const durable = this.scope?.durable === true
    if (withholdsAck({ reason: error.reason, answer: this.#answers.standing, durable })) {
      this.scope?.withholdAck()
    }
    this.vanish(error)
  }

  /** Discards the copy; the store is left as it is. */
  vanish(error: LeaseLostError): void {
    if (this.#gone) return
    this.#gone = true
    this.closeWait()
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

  /** The span's commit has landed: what it held is let go while the run waits. */
  committed(revision: string | null): void {
    this.revision = revision
    if (this.running !== null) return
    this.scope = null
    this.#acting.letGo()
    if (this.#frame !== null) this.#frame.act.current = null
  }

  message(): Message {
    if (this.#message !== null) return this.#message
    throw new ConfigError('There is no message: this conversation was not entered by one.', {
      option: 'c.message',
    })
  }

  handlerContext(): unknown {
    return this.scope === null ? undefined : this.#acting.contextUnder(this.scope)
  }

  get actingRecordId(): string | null {
    return this.#answers.recordId
  }

  get recordId(): string | null {
    return this.#answers.recordId ?? this.scope?.recordId ?? null
  }

  get held(): readonly KeptAnswer[] {
    return this.#answers.held
  }

  takeHeld(): Answer | null {
    return this.#answers.take()
  }

  async wait(frame: Frame, mark: WaitMark): Promise<Answer> {
    await frame.sent()
    await this.ledger.idle()
    const { scope } = this
    if (frame.act.revoked !== null) throw frame.act.revoked
    if (scope === null) throw new LeaseLostError(this.key, 'revoked')
    scope.assertLive()
    this.ledger.stageWait(scope, mark)
    this.#answers.settled()
    this.#hops = 0
    return new Promise((resolve, reject) => {
      const wait = new Wait(frame.watchers, mark, resolve, reject)
      this.#wait = wait
      this.#timers.arm(wait, frame)
      this.#busy.done()
    })
  }

  async answered(frame: Frame, answer: Answer, mark: WaitMark, source: AnswerSource): Promise<void> {
    this.#message = answer.message
    this.#acting.answer = answer
    // A resumed answer was noted when the run began, with the state that its step began with.
    if (source !== 'resumed') this.#answers.note(answer, mark)
    if (source === 'chat' && mark.question > 0) this.#answers.noteLater()
    // A step of work may take long from here on; others get the moment that is owed.
    if (frame.step?.kind === 'do') await this.ledger.flush()
  }

  beforeLongWork(): Promise<void> {
    return this.ledger.flush()
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
        this.closeWait()
        // It went on although its question was open, outside any turn: the rest needs one.
        if (this.#busy.promise === null) await this.#timers.regainTurn()
        // Not `#gone`: TypeScript would take the check before the await for the last word.
        if (this.isGone) return
        if ('error' in outcome) return await this.#failed(outcome.error)
        step = nextStep(this.definition, step, outcome.value)
        if (step === null) return await this.#finish(this.#answers.leftOver)
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
    this.#answers.transitioned()
  }

  async #finish(left: readonly Answer[]): Promise<void> {
    await this.ledger.idle()
    if (this.#gone || this.scope === null) return
    if (left.length > 0) await this.owner.passOn(this.scope, left)
    this.end(this.scope, new LeaseLostError(this.key, 'revoked'))
  }

  async #failed(error: unknown): Promise<void> {
    if (this.#gone) return
    const { lost, givenUp } = judgeFailure(this, error)
    if (lost === null) await this.#finish(givenUp ? [] : this.#answers.leftOver)
    else this.vanish(lost)
  }

  /** A new span acts for this run. */
  begin(scope: TurnScope): void {
    this.scope = scope
    this.fence = scope.fence ?? 0
    this.#acting.answer = answerOf(scope)
    this.#answers.begun()
    if (this.#frame !== null && this.#frame.act.revoked === null) this.#frame.act.current = scope
    this.#busy.begin()
  }

  closeWait(): void {
    this.#wait?.disarm()
    this.#wait = null
  }

  isOpen(wait: Wait | null): boolean {
    return !this.#gone && this.#wait === wait
  }

  isCurrent(scope: TurnScope): boolean {
    return this.owner.isCurrent(this, scope)
  }

  waitsAgain(): void {
    this.#busy.done()
  }
}
