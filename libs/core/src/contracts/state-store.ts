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
  /**
   * With durability: there is a checkpoint with an appointment (`Effects.wakeInMs`): milliseconds until it, by the
   * store's clock; 0 or less once it is over. Absent: none, or the store keeps none.
   */
  dueInMs?: number
  /** With durability: sends known for that record and the checkpoint. */
  outbox?: OutboxEntry[]
  /** State of the user asked for, null if there is none; absent: not read, ask the `UserStore`. */
  user?: UserRecord | null
  /** Stored values that could not be read (corrupt, of an unknown version): the rest of the state is as if they were
   * not there. Whoever opened the chat reports them, has them set aside and goes on without. */
  damaged?: Damage[]
}

/** A stored value that cannot be read. */
export interface Damage {
  what: 'checkpoint' | 'marker' | 'record' | 'outbox' | 'user'
  /** Where it is: the chat key; of a record `<chat key> <record id>`; or the user id. */
  key: string
  /** Says what is wrong; not the value, which may be anybody's secret. */
  error: string
}

/** What to read. */
export interface ReadOptions {
  /** Also `record`, `outbox` and `dueInMs`. */
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
  /**
   * An appointment (ADR 8): if nothing has happened by then, somebody is to look at this chat although no message
   * comes. The store adds these milliseconds to its own clock at the commit, keeps the instant with the checkpoint,
   * says what is left in `ChatState.dueInMs`, and names the chat in `Journal.stranded` once it is over.
   *
   * It belongs to the checkpoint as written: every write or removal of the checkpoint, by the plain methods too, ends
   * the present one; an expired checkpoint has none. So: with `checkpoint`, a number makes one, absent or null means
   * none; without `checkpoint`, absent leaves it as it is, null removes it and leaves checkpoint and revision alone, and
   * a number is not given. Acknowledgements and everything else leave it as it is.
   *
   * A store may ignore it (guarantee `timers` of the store suite): then timeouts of waits live in memory only.
   */
  wakeInMs?: number | null
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
  /**
   * Keeps a copy of an unreadable checkpoint or marker where an operator finds it, for a week or longer, and removes it
   * from the chat. Idempotent; does nothing if it can be read. Without this method the next commit of the chat removes it.
   * @returns where the copy is, in words for a log.
   */
  setAside?(key: string, what: 'checkpoint' | 'marker'): Promise<string>
  /** True if an effect of this inbound id was committed within `dedupeMs`. */
  abstract isCommitted(key: string, inboundId: string): Promise<boolean>
}
