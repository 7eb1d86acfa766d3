/**
 * What became of the messages that a run was given (H7, H8): the answer that its step has not worked off, messages
 * that wait for the next questions, and whether a checkpoint, stored or owed, holds them.
 */
import type { KeptAnswer } from '../contracts/checkpoint-store.js'
import type { AnswerHeld } from '../kernel/settle-policy.js'
import { answerForm, wholeForm, type Answer } from './answers.js'
import type { KeptMark, Ledger, WaitMark } from './ledger.js'
import type { ConversationHost, TurnScope } from './port.js'
import type { RunStart } from './run-start.js'

interface AnsweredRun {
  readonly host: ConversationHost
  readonly ledger: Ledger
  readonly scope: TurnScope | null
}

interface Held {
  answer: Answer
  /** Null: too large to be kept. */
  form: KeptAnswer | null
}

export class Answers {
  #last: AnswerHeld = 'none'
  /** It has not waited yet since the message that entered it. */
  #entered = true
  #kept: KeptMark | null
  readonly #waiting: Held[]
  /** Record whose effects are made now, where it is not the span's (H7). */
  recordId: string | null

  constructor(
    private readonly run: AnsweredRun,
    start: Pick<RunStart, 'held' | 'kept' | 'actingRecordId'>,
  ) {
    this.#kept = start.kept ?? null
    this.recordId = start.actingRecordId ?? null
    this.#waiting = (start.held ?? []).map((answer) => this.#heldOf(answer))
  }

  /** Of everything that the run was given. The message that entered a conversation, or had its step start over, counts
   * too until it waits for the first time: there may be nothing of it in the store, or nothing but the entry. */
  get standing(): AnswerHeld {
    const { ledger, scope } = this.run
    const entering = this.#last === 'none' && this.#entered
    if (entering && !ledger.holds) return 'unkept'
    const last = entering && scope !== null && scope.recordId !== null ? 'kept' : this.#last
    if (this.#waiting.length === 0) return last
    const kept = ledger.holds && this.#waiting.every(({ form }) => form !== null)
    return kept ? last : 'unkept'
  }

  /** What nothing has asked for. */
  get leftOver(): Answer[] {
    return this.#waiting.map(({ answer }) => answer)
  }

  get held(): KeptAnswer[] {
    return this.#waiting.flatMap(({ form }) => (form === null ? [] : [form]))
  }

  /** The run begins with messages that wait, or an answer that the store does not have yet: both are owed. */
  begunWith(given: Answer | null, skipSends: number): void {
    if (given !== null) this.note(given, { question: 0, sends: skipSends, timeoutMs: null })
    else if (this.#waiting.length > 0) this.#owe()
  }

  /** A message came although no question is open. */
  hold(answer: Answer): void {
    this.#waiting.push(this.#heldOf(answer))
    this.#owe()
  }

  take(): Answer | null {
    const taken = this.#waiting.shift()
    if (taken === undefined) return null
    // From here on the message's own record is worked off.
    this.recordId = taken.answer.recordId === this.run.scope?.recordId ? null : taken.answer.recordId
    // Until something else is owed, what is stored holds it still, at its place.
    this.#last = taken.form !== null && this.run.ledger.holds ? 'kept' : 'unkept'
    return taken.answer
  }

  /** H7: the step has its answer and has not worked it off: owed is what a checkpoint can hold of it. */
  note(answer: Answer, mark: WaitMark): void {
    if (mark.question !== 0) return
    this.#last = 'unkept'
    const { ledger } = this.run
    if (!ledger.keeps) return
    const { scope, host } = this.run
    const form = answerForm(answer, scope?.recordId ?? null, host.options.maxAnswerBytes)
    // Too large: the step starts over elsewhere, so its mark must not take the next message for the answer.
    this.#kept = form === null ? null : { form, mark }
    this.#owe()
    if (form !== null && ledger.holds) this.#last = 'kept'
  }

  /** An answer to a later question came from the chat: no checkpoint can hold it (H11). */
  noteLater(): void {
    this.#last = 'unkept'
  }

  /** The step is over: its transition holds what the answer did; without a checkpoint nothing does. */
  transitioned(): void {
    this.#kept = null
    this.#owe()
    if (this.run.ledger.holds && this.#last === 'unkept') this.#last = 'kept'
  }

  /** The run waits: the wait's mark holds everything. */
  settled(): void {
    this.#last = 'none'
    this.#entered = false
    this.#kept = null
  }

  /** A new span begins. */
  begun(): void {
    this.#last = 'none'
    this.#entered = false
    this.recordId = null
  }

  #owe(): void {
    this.run.ledger.owe(this.#kept?.form, this.#kept?.mark)
  }

  #heldOf(answer: Answer): Held {
    return { answer, form: wholeForm(answer, this.run.host.options.maxAnswerBytes) }
  }
}
