/**
 * What the memory store keeps of one chat: checkpoint, marker, committed ids, receipts. All of it synchronous, so
 * that a caller can make it part of its own atomic step. Keeps I5, I9 and I11 of docs/invariants.md.
 *
 * Values are kept as JSON text: what is stored never aliases the caller's object, and what cannot be written as
 * JSON is refused before anything has changed.
 */
import type { ConversationMarker, FlowCheckpoint } from '../contracts/checkpoint-store.js'
import type { CommitResult } from '../contracts/state-store.js'
import { keptRecordOf } from '../kernel/kept-record.js'

interface Stored {
  json: string
  /** By the store's clock; Infinity: for good. */
  expiresAt: number
}

export class ChatRow {
  /** Highest fence that has read or written this chat here. */
  fence = 0
  /** Of the checkpoint, or of the tombstone that its removal left; null if there never was one. */
  private rowRevision: string | null = null
  private checkpoint: Stored | null = null
  /** By the store's clock: when somebody is to look at the checkpoint; null if nobody need. */
  private wakeAt: number | null = null
  /** Of the journal, that the checkpoint points to. */
  private pointer: string | null = null
  private markerRow: Stored | null = null
  private committed: Map<string, number> | null = null
  private receipts: Map<string, { result: CommitResult; expiresAt: number }> | null = null
  lastMessageId: string | null = null
  lastMessageAt = 0

  /** @throws Error if it cannot be read. */
  readCheckpoint(now: number): FlowCheckpoint | null {
    return read<FlowCheckpoint>(this.checkpoint, now)
  }

  /** @throws Error if it cannot be read. */
  readMarker(now: number): ConversationMarker | null {
    return read<ConversationMarker>(this.markerRow, now)
  }

  /** Removes a value and hands it out as it is. The revision stays: what is chained to it goes on. */
  takeOut(what: 'checkpoint' | 'marker'): string | null {
    const stored = what === 'checkpoint' ? this.checkpoint : this.markerRow
    if (what === 'checkpoint') this.checkpoint = null
    else this.markerRow = null
    return stored?.json ?? null
  }

  /** The unreadable counts: it is there until it is taken out. */
  private hasCheckpoint(now: number): boolean {
    return this.checkpoint !== null && this.checkpoint.expiresAt > now
  }

  /** What compare-and-set compares; an expired checkpoint leaves no row. */
  revision(now: number): string | null {
    return this.checkpoint && this.checkpoint.expiresAt <= now ? null : this.rowRevision
  }

  /** True if a writer that expects `expected` may write. Null stands for: none, cleared or expired. */
  matches(expected: string | null, now: number): boolean {
    if (expected === null) return !this.hasCheckpoint(now)
    return expected === this.rowRevision
  }

  /** Milliseconds until the checkpoint's appointment; null if it has none. */
  dueInMs(now: number): number | null {
    if (this.wakeAt === null || this.checkpoint === null || this.checkpoint.expiresAt <= now) return null
    return this.wakeAt - now
  }

  /** Id of the record that is to be found as long as the checkpoint stands (H7). */
  get keptRecord(): string | null {
    return this.checkpoint === null ? null : this.pointer
  }

  forgetWake(): void {
    this.wakeAt = null
  }

  /** @param json of `checkpoint`. */
  writeCheckpoint(
    json: string,
    checkpoint: FlowCheckpoint,
    ttlMs: number | undefined,
    now: number,
    wakeInMs: number | null = null,
  ): void {
    this.checkpoint = { json, expiresAt: ttlMs === undefined ? Infinity : now + ttlMs }
    this.rowRevision = checkpoint.revision
    this.pointer = keptRecordOf(checkpoint)
    this.wakeAt = wakeInMs === null ? null : now + wakeInMs
  }

  /** Leaves a tombstone whose revision is new, so that no write in flight that knew the old one gets through. */
  clearCheckpoint(): void {
    this.checkpoint = null
    this.wakeAt = null
    if (this.rowRevision !== null && !this.rowRevision.startsWith('-'))
      this.rowRevision = `-${this.rowRevision}`
  }

  writeMarker(json: string | null, ttlMs: number | undefined, now: number): void {
    this.markerRow = json === null ? null : { json, expiresAt: ttlMs === undefined ? Infinity : now + ttlMs }
  }

  isCommitted(id: string, now: number): boolean {
    return (this.committed?.get(id) ?? 0) > now
  }

  noteCommitted(id: string, until: number, now: number, most: number): void {
    this.committed ??= new Map()
    this.committed.delete(id)
    this.committed.set(id, until)
    prune(this.committed, (expiresAt) => expiresAt <= now, most)
  }

  receipt(commitId: string): CommitResult | undefined {
    return this.receipts?.get(commitId)?.result
  }

  noteReceipt(commitId: string, result: CommitResult, expiresAt: number, now: number): void {
    this.receipts ??= new Map()
    this.receipts.set(commitId, { result, expiresAt })
    prune(this.receipts, (receipt) => receipt.expiresAt <= now, Infinity)
  }
}

function read<T extends { v: 1 }>(stored: Stored | null, now: number): T | null {
  if (stored === null || stored.expiresAt <= now) return null
  const value = JSON.parse(stored.json) as T | null
  if (value?.v !== 1) throw new Error(`its version is ${String(value?.v)}, and 1 is understood here`)
  return value
}

/** Entries are in order of age: drops from the old end. */
function prune<T>(map: Map<string, T>, over: (value: T) => boolean, most: number): void {
  for (const [key, value] of map) {
    if (!over(value) && map.size <= most) break
    map.delete(key)
  }
}
