/**
 * A chat's state as one unit: read at the opening of a turn, committed at its end (Z4).
 * A store that has this takes part in fenced commits, also with turns in another backend.
 */
import type { ConversationMarker, FlowCheckpoint } from './checkpoint-store.js'
import type { JournalRecord } from './journal.js'
import type { OutboxEntry } from './outbox.js'
import type { Message } from './message.js'
import type { UserRecord } from './user-store.js'

/** What a turn needs to know of its chat. */
export interface ChatState {
  checkpoint: FlowCheckpoint | null
  marker: ConversationMarker | null
  /** Revision of the checkpoint row, tombstones included; null if there is no row. What CAS compares. */
  revision: string | null
  /** With durability: the oldest record that is not acknowledged. */
  record?: JournalRecord | null
  /** With durability: sends known for that record and the checkpoint. */
  outbox?: OutboxEntry[]
  /** State of the user asked for, null if there is none; absent: not read, ask the `UserStore`. */
  user?: UserRecord | null
  /** A stored value could not be read (corrupt, unknown version): it was moved aside; report it. */
  damaged?: { what: string; key: string; error: string }[]
}

/** What to read. */
export interface ReadOptions {
  /** Also `record` and `outbox`. */
  journal?: boolean
  /** Also this user's state (`ctx.user`), where it can be had in the same trip; else `user` stays absent. */
  user?: string
}

/** What arrives with a message, noted in the same trip as the ticket where possible. */
export interface Arrival {
  /** The chat's row: last message id and time. */
  messageId: string
  timestamp: number
  /** With durability: to be journalled. */
  message?: Message
}

/** Everything one handled message (or timer) changes, as one atomic unit. */
export interface Effects {
  /** Id of the inbound message whose effect this is: from now on a duplicate (Z3). */
  inboundId?: string
  /** New checkpoint, or null to clear; absent: unchanged. `checkpoint.revision` must be new. */
  checkpoint?: FlowCheckpoint | null
  /** What the checkpoint's row must still be (`ChatState.revision`); compared whenever `checkpoint` is given. */
  expectedRevision?: string | null
  marker?: ConversationMarker | null
  /** Records to acknowledge. */
  ack?: string[]
  /** Outbox entries to write: intents, or settled ones. */
  outbox?: OutboxEntry[]
  /** Outbox keys whose purpose is served. */
  forget?: string[]
}

/**
 * - `committed`: it is stored, now or by an earlier copy of the same commit.
 * - `refused`: a later fence or another revision is there; nothing of it was stored.
 */
export type CommitResult =
  | {
      outcome: 'committed'
      /** Revision of the checkpoint row after it. */
      revision: string | null
      /** With durability: unacknowledged records remain. */
      more?: boolean
    }
  | { outcome: 'refused'; why: 'superseded' | 'absent' }

export abstract class StateStore {
  /** Notes an arrival without a ticket, for turns in another backend. Journals if `message` is given. */
  abstract arrive(key: string, arrival: Arrival): Promise<'recorded' | 'duplicate'>
  /** Reads the chat and, in the same statement, raises the store's fence of this key: lower fences are refused
   * from now on. @returns null if a higher fence is already known. */
  abstract openState(key: string, fence: number, options?: ReadOptions): Promise<ChatState | null>
  /**
   * Stores `effects` in one atomic unit if no higher fence has opened or written this key and the checkpoint's
   * revision is the expected one. Idempotent by `commitId` for at least 2 × `leaseMs`.
   */
  abstract commitState(key: string, fence: number, commitId: string, effects: Effects): Promise<CommitResult>
  /** True if an effect of this inbound id was committed within `dedupeMs`. */
  abstract isCommitted(key: string, inboundId: string): Promise<boolean>
}
