/**
 * Messages that waited behind a kept answer when their conversation ended without asking for them (H7): each is handled as
 * one that no conversation claimed, in order, under the span that ended it. Whoever wrote them is owed an answer.
 */
import { LeaseLostError } from '../contracts/errors.js'
import { tellable } from '../kernel/told-error.js'
import type { Answer } from './answers.js'
import type { ConversationHost, TurnScope } from './port.js'

/** How a conversation begins that one of these messages enters. */
export interface Entry {
  entered: Answer
  /** Those after it: answers to the first questions. They are in what is stored of the entry already, since that
   * replaces the only row that had them. */
  held: Answer[]
  /** Record whose effects are made now, where it is not the span's. */
  actingRecordId: string | null
}

interface Passing {
  readonly scope: TurnScope
  /** What is being handled. */
  current: Answer | null
  readonly rest: Answer[]
  /** A conversation was entered that has the rest. */
  claimed: boolean
  done: Promise<void>
}

export class LeftOver {
  readonly #passing = new Map<string, Passing>()

  constructor(private readonly host: ConversationHost) {}

  /** Settles when the messages of this chat are handled; null if there are none. */
  of(key: string): Promise<void> | null {
    return this.#passing.get(key)?.done ?? null
  }

  /** The span is cut short: what it was given last is not acknowledged, and comes again. */
  stopped(key: string): void {
    this.#passing.get(key)?.scope.withholdAck()
  }

  /** For a conversation that is entered under this span; null if none of these messages enters it. */
  claim(scope: TurnScope): Entry | null {
    const passing = this.#of(scope)
    if (passing === undefined || passing.current === null) return null
    passing.claimed = true
    const { current: entered, rest } = passing
    const actingRecordId = entered.recordId === scope.recordId ? null : entered.recordId
    return { entered, held: [...rest], actingRecordId }
  }

  /** The conversation that was entered is left again at once. */
  release(scope: TurnScope): void {
    const passing = this.#of(scope)
    if (passing !== undefined) passing.claimed = false
  }

  /** Never rejects: what a handler throws is a failure of the span. */
  passOn(scope: TurnScope, answers: readonly Answer[]): Promise<void> {
    const before = this.of(scope.key)
    const passing: Passing = {
      scope,
      current: null,
      rest: [...answers],
      claimed: false,
      done: Promise.resolve(),
    }
    this.#passing.set(scope.key, passing)
    const each = this.#each(passing)
    // What entered the conversation that leaves these may be at work still.
    passing.done = before === null ? each : Promise.all([before, each]).then(() => undefined)
    return passing.done.finally(() => {
      if (this.#passing.get(scope.key) === passing) this.#passing.delete(scope.key)
    })
  }

  #of(scope: TurnScope): Passing | undefined {
    const passing = this.#passing.get(scope.key)
    return passing?.scope === scope ? passing : undefined
  }

  async #each(passing: Passing): Promise<void> {
    const { scope, rest } = passing
    let failed = false
    for (let answer = rest.shift(); answer !== undefined; answer = rest.shift()) {
      passing.current = answer
      try {
        scope.assertLive()
        await this.host.unclaimed(scope, answer)
      } catch (error) {
        // Cut short; whoever did that says so. Somebody else's lease, such as a job's, is an error like any other.
        if (error instanceof LeaseLostError && error.key === scope.key) continue
        if (failed) this.host.report(tellable(error))
        else scope.fail(tellable(error))
        failed = true
        // The attempt is made again, with all of them. Without a record nobody comes back to the rest.
        if (scope.recordId !== null) return
      } finally {
        passing.current = null
      }
      if (passing.claimed) return
    }
  }
}
