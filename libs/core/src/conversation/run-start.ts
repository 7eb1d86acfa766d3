/** What a run begins with, and whom it belongs to. */
import type { Answer } from './answers.js'
import type { Definition } from './definitions.js'
import type { ConversationHost, TurnScope } from './port.js'

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

export interface RunOwner<R> {
  readonly host: ConversationHost
  /** False if the run's copy is stale under this span. */
  isCurrent(run: R, scope: TurnScope): boolean
  /** It is gone; nothing of it runs for the chat any more. */
  gone(run: R): void
}
