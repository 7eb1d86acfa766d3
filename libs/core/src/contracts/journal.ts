/**
 * The journal: inbound messages recorded on arrival, worked on oldest first under their chat's turn (D1, T6).
 * Acknowledgements are part of a commit (see state-store.ts), not of this contract.
 */
import type { HookResults } from './checkpoint-store.js'
import type { Message } from './message.js'

export interface JournalRecord {
  v: 1
  /** The transport's message id: unique within its chat key; what deduplicates. */
  id: string
  /** Grows in the order of arrival within the chat. */
  seq: number
  message: Message
  hooks?: HookResults
  /** Failed attempts so far; a lost turn, a wait or a shutdown is none (D3). */
  attempts: number
  lastError?: string
  /** Milliseconds of back-off that were still left when this was read: do not work on it before. */
  waitMs?: number
}

export interface DeadLetter {
  key: string
  record: JournalRecord
  /** When it was given up, milliseconds since the epoch by the store's clock. */
  at: number
  /** Present if the record cannot be read: what is wrong with it. Its `message` is an empty one then, and all that can
   * be done is to discard it (or to put it back once it was mended in the store). */
  damaged?: string
}

export abstract class Journal {
  /**
   * Records a message unless its id is known for this chat (pending, acknowledged within `dedupeMs`, or dead).
   * Idempotent by id: resent after a lost reply it answers `duplicate` and nothing is lost.
   */
  abstract record(key: string, message: Message): Promise<'recorded' | 'duplicate'>
  /** The oldest record that is neither acknowledged nor dead, whatever its back-off, or null. */
  abstract oldest(key: string): Promise<JournalRecord | null>
  /** A record by id, also acknowledged ones that a kept answer still points to; null if unknown. */
  abstract find(key: string, id: string): Promise<JournalRecord | null>
  /**
   * Notes a failed attempt under the turn `fence`: back-off for `retryMs`, or, if null, to the dead letters.
   * @returns false if a higher fence is known (somebody else is working on this chat).
   */
  abstract fail(
    key: string,
    id: string,
    fence: number,
    error: string,
    retryMs: number | null,
  ): Promise<boolean>
  /**
   * Chats with a record that has been due for `idleMs`, or with an appointment (`Effects.wakeInMs`) that has been over
   * for `idleMs`, and that no live replica seems to be working on or waiting for: what a sweeper wakes. Each once, in
   * any order. May name chats that are being worked on; never omits a stranded one for ever.
   * @param keyPrefix only chats whose key begins with it, so that what others left stranded in the same store does not
   * use up `limit` (`chatKeyPrefix` makes it of a provider). Default: all. A journal that ignores it names more, and
   * the caller passes over what is not its own.
   */
  abstract stranded(idleMs: number, limit: number, keyPrefix?: string): Promise<string[]>
  abstract deadLetters(limit: number): Promise<DeadLetter[]>
  /** Puts a dead letter back with no attempts counted. False if unknown. */
  abstract retry(key: string, id: string): Promise<boolean>
  /** Deletes a dead letter; its id stays known as a duplicate. False if unknown. */
  abstract discard(key: string, id: string): Promise<boolean>
}
