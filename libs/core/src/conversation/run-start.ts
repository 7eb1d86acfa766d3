/** What a run begins with, and whom it belongs to. */
import type { Message } from '../contracts/message.js'
import type { Answer } from './answers.js'
import type { KeptMark } from './ledger.js'
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
  /** What `c.message` is until one comes, where the span has none. */
  message?: Message
  /** What it is entered by, where that is not the span's message (left-over.ts). */
  entered?: Answer
  /** Messages for its next questions. */
  held?: Answer[]
  /** The answer that its step begins with, as the store has it (H7). */
  kept?: KeptMark
  /** Record whose effects it goes on with, where it is not the span's. */
  actingRecordId?: string | null
}

export interface RunOwner<R> {
  readonly host: ConversationHost
  /** False if the run's copy is stale under this span. */
  isCurrent(run: R, scope: TurnScope): boolean
  /** One ends, and these are left of what it was given: they are handled before it is gone. */
  passOn(scope: TurnScope, left: readonly Answer[]): Promise<void>
  /** It is gone; nothing of it runs for the chat any more. */
  gone(run: R): void
}
