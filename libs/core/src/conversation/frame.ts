/**
 * One execution of one step (or of a whole asynchronous conversation): counts its sends and questions, and stands
 * between the application's code and the run (run.ts). Once revoked, whatever that code tries is refused for ever,
 * also if the same replica has taken the chat again since (K4).
 *
 * Sends have ordinals: those made before the wait that a step is resumed at are not made again (K1), and with the
 * step's name and visit they name a send for the outbox (D2). A frame's sends and questions are made one after the
 * other, whether they are awaited or not.
 */
import type { Duration } from '../contracts/coordinator.js'
import { ConfigError, LeaseLostError, TooManyAttemptsError, WaitTimeoutError } from '../contracts/errors.js'
import type { Message, Outgoing, Sent } from '../contracts/message.js'
import { parseDuration } from '../kernel/duration.js'
import type { Answer } from './answers.js'
import { parseAsk, type ParsedAsk } from './ask-options.js'
import {
  ConversationContext,
  Directive,
  guarded,
  StepContext,
  type AskOptions,
  type ContextActions,
  type Validator,
} from './contexts.js'
import type { Step } from './definitions.js'
import type { WaitMark } from './ledger.js'
import type { ActScope, ConversationHost, SendRef } from './port.js'
import { unknownName } from './registry.js'
import { Refusals } from './refusals.js'
import type { Watcher } from './wait.js'

/**
 * How a step goes on after a hand-over: its first question gets `given` (`kept`: a checkpoint holds it already; else
 * the run notes it before the step starts), or its timeout; earlier sends are not made again.
 */
export type Resume = { skipSends: number } & ({ given: Answer; kept: boolean } | { timedOutMs: number })

/** Where an answer came from: the checkpoint or message that a step is resumed with, a message that waited, the chat. */
export type AnswerSource = 'resumed' | 'held' | 'chat'

export type Outcome = { value: unknown } | { error: unknown }

/** What a frame needs of its run. */
export interface FrameHost {
  readonly host: ConversationHost
  readonly key: string
  readonly chatId: string
  readonly definition: { name: string; steps: readonly string[] }
  readonly state: object
  readonly visit: number
  /** Record whose effects are made now, where it is not the scope's (H7). */
  readonly actingRecordId: string | null
  message(): Message
  handlerContext(): unknown
  /** A message that is there already: the one that woke a step with a kept answer (H7). */
  takeHeld(): Answer | null
  wait(frame: Frame, mark: WaitMark): Promise<Answer>
  /** The answer is about to be judged: resolves when it may go on. */
  answered(frame: Frame, answer: Answer, mark: WaitMark, source: AnswerSource): Promise<void>
  /** Writes what is owed before work that may take long. */
  beforeLongWork(): Promise<void>
}

export class Frame implements ContextActions {
  readonly act: ActScope
  readonly key: string
  readonly chatId: string
  readonly stepName: string | null
  readonly watchers = new Set<Watcher>()
  /** Present while `c.idle` code runs: counts its sends apart, and forbids questions. */
  #timerOrdinal: number | null = null
  readonly #abort = new AbortController()
  readonly #refusals: Refusals
  readonly #visit: number
  #ordinal = 0
  #questions = 0
  #asking: Promise<unknown> = Promise.resolve()
  #openAsks = 0
  #sending: Promise<unknown> = Promise.resolve()
  #directive: Directive | null = null
  #interrupt: (outcome: Outcome) => void = () => undefined

  constructor(
    private readonly run: FrameHost,
    readonly step: Step | null,
    private resume: Resume | null,
  ) {
    this.key = run.key
    this.chatId = run.chatId
    this.stepName = step?.name ?? null
    this.#visit = run.visit
    this.act = { current: null, revoked: null, send: (content) => guarded(this.say(content)) }
    this.#refusals = new Refusals(run.host.clock)
  }

  get state(): object {
    return this.run.state
  }
  get signal(): AbortSignal {
    return this.#abort.signal
  }
  message(): Message {
    return this.run.message()
  }
  handlerContext(): unknown {
    return this.run.handlerContext()
  }

  /** Runs `code` until it settles or is interrupted; never rejects. */
  execute(code: (c: StepContext) => unknown): Promise<Outcome> {
    return new Promise((resolve) => {
      this.#interrupt = resolve
      this.inScope(() => code(new StepContext(this))).then(
        (value) => resolve({ value }),
        (error: unknown) => resolve({ error }),
      )
    })
  }

  /** Runs `code` so that what it does is found to belong to this frame. */
  async inScope(code: () => unknown): Promise<unknown> {
    return this.run.host.runIn(this.act, code)
  }

  /** Calls a `c.idle` of this frame; never rejects. */
  async fire(watcher: Watcher): Promise<Outcome> {
    this.#timerOrdinal = 0
    try {
      return { value: await this.inScope(watcher.fire) }
    } catch (error) {
      return { error }
    } finally {
      this.#timerOrdinal = null
    }
  }

  /** Goes on without the code that waits in this frame. */
  abandon(outcome: Outcome): void {
    this.revoke(new LeaseLostError(this.key, 'revoked'))
    this.#interrupt(outcome)
  }

  revoke(error: LeaseLostError): void {
    if (this.act.revoked !== null) return
    this.act.revoked = error
    this.act.current = null
    this.#abort.abort(error)
  }

  /** The step has returned `value`: warns of what it forgot. */
  close(value: unknown): void {
    const { logger } = this.run.host
    const details = { key: this.key, flow: this.run.definition.name, step: this.stepName }
    if (this.#openAsks > 0) {
      logger.warn(details, 'A step has ended while it was asking: await c.ask().')
      this.revoke(new LeaseLostError(this.key, 'revoked'))
    }
    if (this.#directive !== null && !(value instanceof Directive)) {
      logger.warn(details, 'c.goto() or c.end() was called and not returned: it has no effect.')
    }
  }

  /** Resolves when everything said so far was sent or has failed. */
  async sent(): Promise<void> {
    await this.#sending
  }

  say(content: Outgoing): Promise<Sent> {
    if (this.act.revoked !== null) return this.#refusals.refuse(this.act.revoked)
    const ref = this.#nextRef()
    if (this.resume !== null && ref.ordinal < this.resume.skipSends) return Promise.resolve({ id: '' })
    const scope = this.act.current
    const sending = this.#sending.then(() => {
      if (this.act.revoked !== null) throw this.act.revoked
      if (scope === null) throw new LeaseLostError(this.key, 'revoked')
      return scope.send(content, ref)
    })
    this.#sending = sending.catch((error: unknown) => {
      this.run.host.logger.debug(
        { key: this.key, step: this.stepName, err: error },
        'A send of a step failed.',
      )
    })
    return sending
  }

  ask(question: Outgoing, options: AskOptions | undefined): Promise<Message> {
    if (this.act.revoked !== null) return this.#refusals.refuse(this.act.revoked)
    if (this.#timerOrdinal !== null) {
      return Promise.reject(new ConfigError('c.ask cannot be used inside c.idle.', { option: 'c.idle' }))
    }
    this.#openAsks++
    const asked = this.#asking.then(() =>
      this.#ask(question, parseAsk(options, this.run.host.options.timeoutMs)),
    )
    this.#asking = asked.catch(() => undefined)
    return asked.finally(() => this.#openAsks--)
  }

  async sleep(duration: Duration): Promise<void> {
    if (this.act.revoked !== null) return this.#refusals.refuse(this.act.revoked)
    const ms = parseDuration('c.sleep', duration)
    await this.run.beforeLongWork()
    await new Promise<void>((resolve, reject) => {
      this.#assertLive()
      const timer = this.run.host.clock.setTimeout(() => {
        this.signal.removeEventListener('abort', stop)
        resolve()
      }, ms)
      const stop = (): void => {
        timer.cancel()
        reject(this.act.revoked ?? new LeaseLostError(this.key, 'revoked'))
      }
      this.signal.addEventListener('abort', stop, { once: true })
    })
  }

  idle(duration: Duration, fn: (c: ConversationContext) => unknown): () => void {
    const watcher: Watcher = {
      ms: parseDuration('c.idle', duration, { minMs: 1 }),
      id: this.watchers.size,
      fire: () => fn(new StepContext(this)),
      timer: null,
    }
    if (this.act.revoked === null) this.watchers.add(watcher)
    return () => {
      watcher.timer?.cancel()
      this.watchers.delete(watcher)
    }
  }

  direct(kind: 'goto' | 'end', step: string | null): Directive {
    const { name, steps } = this.run.definition
    if (kind === 'goto' && (step === null || !steps.includes(step))) {
      throw unknownName(`Flow "${name}" has no step "${String(step)}" to go to`, String(step), steps)
    }
    const directive = new Directive(kind, step)
    if (this.#timerOrdinal === null) this.#directive = directive
    return directive
  }

  async #ask(question: Outgoing, { validate, timeoutMs, maxAttempts }: ParsedAsk): Promise<Message> {
    this.#assertLive()
    const index = this.#questions++
    const mark = (): WaitMark => ({ question: index, sends: this.#ordinal, timeoutMs })
    const resume = this.#takeResumed()
    if (resume !== null && 'timedOutMs' in resume) throw new WaitTimeoutError(this.key, resume.timedOutMs)
    let next = resume?.given ?? null
    if (next === null) await this.say(question)
    for (let attempt = 1; ; attempt++) {
      this.#assertLive()
      const resumed = next
      const held = resumed === null ? this.run.takeHeld() : null
      const answer = resumed ?? held ?? (await this.run.wait(this, mark()))
      const source = resumed !== null ? 'resumed' : held !== null ? 'held' : 'chat'
      await this.run.answered(this, answer, mark(), source)
      next = null
      const verdict = await this.#judge(validate, answer.message)
      this.#assertLive()
      if (verdict === true || verdict === undefined) return answer.message
      if (attempt >= maxAttempts) throw new TooManyAttemptsError(this.key, attempt)
      await this.say(verdict === false ? question : verdict)
    }
  }

  /** The step has been brought to the question that it is resumed at: sends count on from the mark. */
  #takeResumed(): Resume | null {
    const { resume } = this
    this.resume = null
    if (resume !== null) this.#ordinal = Math.max(this.#ordinal + 1, resume.skipSends)
    return resume
  }

  async #judge(validate: Validator | undefined, message: Message): Promise<boolean | string | undefined> {
    if (validate === undefined) return true
    const verdict = this.run.host.runIn(this.act, () => validate(message))
    if (!isThenable(verdict)) return verdict ?? undefined
    // A slow validator is part of the step: its answer is stored meanwhile (H7).
    const [judged] = await Promise.all([verdict, this.run.beforeLongWork()])
    return judged ?? undefined
  }

  #nextRef(): SendRef {
    const ordinal = this.#timerOrdinal === null ? this.#ordinal++ : this.#timerOrdinal++
    const recordId = this.run.actingRecordId
    const ref = { step: this.stepName ?? '', visit: this.#visit, ordinal }
    return recordId === null ? ref : { ...ref, recordId }
  }

  #assertLive(): void {
    if (this.act.revoked !== null) throw this.act.revoked
  }
}

function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && 'then' in value
}
