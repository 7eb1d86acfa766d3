/**
 * Messages that waited behind a kept answer when their conversation ended without asking for them (H7): each is handled as
 * one that no conversation claimed, in order, under the span that ended it. Whoever wrote them is owed an answer.
 */
import { LeaseLostError } from '../contracts/errors.js'
import { tellable } from '../kernel/told-error.js'
import type { Answer } from './answers.js'
import type { ConversationHost, TurnScope } from './port.js'

/** What it needs of a run. */
interface Successor {
  give(scope: TurnScope, answer: Answer): void
}

interface Passing {
  scope: TurnScope
  done: Promise<void>
}

export class LeftOver {
  readonly #passing = new Map<string, Passing>()

  /** @param successor of the conversation that has ended, if one of these messages entered another one. */
  constructor(
    private readonly host: ConversationHost,
    private readonly successor: (key: string) => Successor | undefined,
  ) {}

  /** Settles when the messages of this chat are handled; null if there are none. */
  of(key: string): Promise<void> | null {
    return this.#passing.get(key)?.done ?? null
  }

  /** The span is cut short: what it was given last is not acknowledged, and comes again. */
  stopped(key: string): void {
    this.#passing.get(key)?.scope.withholdAck()
  }

  /** Never rejects: what a handler throws is a failure of the span. */
  passOn(scope: TurnScope, answers: readonly Answer[]): Promise<void> {
    const passing: Passing = { scope, done: this.#each(scope, answers) }
    this.#passing.set(scope.key, passing)
    return passing.done.finally(() => {
      if (this.#passing.get(scope.key) === passing) this.#passing.delete(scope.key)
    })
  }

  async #each(scope: TurnScope, answers: readonly Answer[]): Promise<void> {
    let failed = false
    for (const answer of answers) {
      try {
        scope.assertLive()
        const successor = this.successor(scope.key)
        if (successor !== undefined) successor.give(scope, answer)
        else await this.host.unclaimed(scope, answer)
      } catch (error) {
        // Cut short; whoever did that says so. Somebody else's lease, such as a job's, is an error like any other.
        if (error instanceof LeaseLostError && error.key === scope.key) continue
        if (failed) this.host.report(tellable(error))
        else scope.fail(tellable(error))
        failed = true
        // The attempt is made again, with all of them. Without a record nobody comes back to the rest.
        if (scope.recordId !== null) return
      }
    }
  }
}
