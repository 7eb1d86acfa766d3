/** What became of the messages that a run was given under its present span (H7, H8). */
import type { AnswerHeld } from '../kernel/settle-policy.js'
import { keptForm, type Answer } from './answers.js'
import type { Ledger, WaitMark } from './ledger.js'
import type { ConversationHost, TurnScope } from './port.js'

interface AnsweredRun {
  readonly host: ConversationHost
  readonly ledger: Ledger
  readonly scope: TurnScope | null
}

export class Answers {
  #last: AnswerHeld = 'none'
  /** Record whose effects are made now, where it is not the span's (H7). */
  recordId: string | null

  /** @param held messages for the next question. @param recordId of a kept answer that the run begins with. */
  constructor(
    private readonly run: AnsweredRun,
    private readonly held: Answer[],
    recordId: string | null,
  ) {
    this.recordId = recordId
  }

  /** Of everything that the run was given: a message that waits for the next question is in no checkpoint either. */
  get standing(): AnswerHeld {
    return this.held.length > 0 ? 'unkept' : this.#last
  }

  /** A message came although no question is open. */
  hold(answer: Answer): void {
    this.held.push(answer)
  }

  take(): Answer | null {
    const taken = this.held.shift() ?? null
    // From here on the span's own record is worked off.
    if (taken !== null) this.recordId = null
    return taken
  }

  /** H7: the step has its answer and has not worked it off: owed is what a checkpoint can hold of it. */
  note(answer: Answer, mark: WaitMark): void {
    const { ledger, scope, host } = this.run
    this.#last = 'unkept'
    if (!ledger.keeps || mark.question !== 0) return
    const form = keptForm(answer, scope?.durable === true, host.options.maxAnswerBytes)
    // Too large: the step starts over elsewhere, so its mark must not take the next message for the answer.
    if (form === null) return ledger.owe()
    ledger.owe(form, mark)
    if (ledger.holds) this.#last = 'kept'
  }

  /** The step is over: its transition holds what the answer did; without a checkpoint nothing does. */
  transitioned(): void {
    const { ledger } = this.run
    if (ledger.holds && this.#last === 'unkept') this.#last = 'kept'
  }

  /** The run waits: the wait's mark holds everything. */
  settled(): void {
    this.#last = 'none'
  }

  /** A new span begins. */
  begun(): void {
    this.#last = 'none'
    this.recordId = null
  }
}
