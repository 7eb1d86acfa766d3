/** What a run works on under its span, which may be another message than the span's (H7), and `c.ctx` for it. */
import type { Answer } from './answers.js'
import type { ConversationHost, TurnScope } from './port.js'

export class Acting {
  /** Null: a timer, or nothing. */
  answer: Answer | null
  #made: { scope: TurnScope; answer: Answer | null; context: unknown } | null = null

  constructor(
    private readonly host: ConversationHost,
    answer: Answer | null,
  ) {
    this.answer = answer
  }

  /** Made once for each message. */
  contextUnder(scope: TurnScope): unknown {
    const { answer } = this
    if (this.#made?.scope !== scope || this.#made.answer !== answer) {
      this.#made = { scope, answer, context: this.host.contextFor(scope, answer) }
    }
    return this.#made.context
  }

  /** The span is over. */
  letGo(): void {
    this.answer = null
    this.#made = null
  }
}
