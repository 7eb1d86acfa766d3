/** What an error that a conversation's code did not catch, or a write that failed beside it, means for its run. */
import { LeaseLostError } from '../contracts/errors.js'
import { tellable } from '../kernel/told-error.js'
import { endingOf } from '../kernel/settle-policy.js'
import type { ConversationHost, TurnScope } from './port.js'

interface FailedRun {
  readonly host: ConversationHost
  readonly key: string
  readonly definition: { name: string }
  readonly stepName: string | null
  readonly scope: TurnScope | null
}

export interface Judged {
  /** With what the copy is to be discarded; null if the run ends in the store too. */
  lost: LeaseLostError | null
  /** Its record is: the message goes to the dead letters, and is not handled besides. */
  givenUp: boolean
}

/** Tells the span. */
export function judgeFailure(run: FailedRun, thrown: unknown): Judged {
  const error = tellable(thrown)
  const { host, key, scope } = run
  const details = { key, flow: run.definition.name, step: run.stepName, err: error }
  switch (endingOf(error, key)) {
    case 'lost':
      host.logger.warn(details, 'The turn was lost: the conversation is discarded here.')
      return { lost: asLost(key, error), givenUp: false }
    case 'quiet':
      host.logger.debug(details, 'The conversation ended without an answer.')
      return { lost: null, givenUp: false }
    case 'failed': {
      scope?.fail(error)
      // The record is tried again and finds the conversation where the store has it; after the last attempt nowhere.
      const attempted = scope?.durable === true && scope.recordId !== null
      const again = attempted && scope.finalAttempt !== true
      return { lost: again ? asLost(key, error) : null, givenUp: attempted && !again }
    }
  }
}

/** A write that nobody awaits. @returns with what the copy is to be discarded, if it is. */
export function judgeLateWrite(run: FailedRun, error: unknown): LeaseLostError | null {
  if (error instanceof LeaseLostError) return error
  // Still owed: the commit that ends the span carries it, or fails with it.
  run.host.logger.warn({ key: run.key, err: error }, 'A checkpoint could not be written yet.')
  return null
}

function asLost(key: string, error: unknown): LeaseLostError {
  return error instanceof LeaseLostError ? error : new LeaseLostError(key, 'revoked', { cause: error })
}
