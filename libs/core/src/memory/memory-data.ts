/**
 * The data of a memory store, as synchronous operations: the store's asynchronous methods are thin wrappers, and the
 * hub makes `commit` and the reading part of `take` one step with its turns (Z4).
 */
import type { Clock } from '../contracts/clock.js'
import { ConfigError } from '../contracts/errors.js'
import type {
  Arrival,
  ChatState,
  CommitResult,
  Damage,
  Effects,
  ReadOptions,
} from '../contracts/state-store.js'
import type { FlowCheckpoint } from '../contracts/checkpoint-store.js'
import { ChatRow } from './chat-row.js'
import { JournalData } from './journal-data.js'
import { OutboxData } from './outbox-data.js'

/** What the turns of the same backend know of a key; absent when turns live elsewhere. */
export interface TurnView {
  /** Fence of the last grant, 0 if unknown. */
  lastFence(key: string): number
  isCommitted(key: string, inboundId: string): boolean
  /** A live session holds the key or waits for it. */
  isBusy(key: string): boolean
}

export interface MemoryDataLimits {
  dedupeMs: number
  dedupePerKey: number
  /** How long a receipt of `commitState` is kept; at least two leases. */
  receiptMs: number
}

export class MemoryData {
  turns: TurnView | null = null
  readonly journal: JournalData
  readonly outbox = new OutboxData()
  /** Values that could not be read, as they were, by `<what> of <key>`. */
  readonly asides = new Map<string, string>()
  private readonly rows = new Map<string, ChatRow>()
  /** Chats that may have an appointment. */
  private readonly waking = new Set<string>()

  constructor(
    private readonly clock: Clock,
    private readonly limits: MemoryDataLimits,
  ) {
    this.journal = new JournalData(clock, limits.dedupeMs)
  }

  find(key: string): ChatRow | undefined {
    return this.rows.get(key)
  }

  row(key: string): ChatRow {
    const known = this.rows.get(key)
    if (known) return known
    const made = new ChatRow()
    this.rows.set(key, made)
    return made
  }

  /** The highest fence that has read or written the chat: lower ones are refused (I5). */
  fence(key: string): number {
    return Math.max(this.rows.get(key)?.fence ?? 0, this.turns?.lastFence(key) ?? 0)
  }

  /** @returns false if a higher fence is known. */
  raiseFence(key: string, fence: number): boolean {
    if (this.fence(key) > fence) return false
    this.row(key).fence = fence
    return true
  }

  isCommitted(key: string, id: string): boolean {
    const here = this.rows.get(key)?.isCommitted(id, this.clock.now()) ?? false
    return here || (this.turns?.isCommitted(key, id) ?? false)
  }

  arrive(key: string, arrival: Arrival): 'recorded' | 'duplicate' {
    const row = this.row(key)
    row.lastMessageId = arrival.messageId
    row.lastMessageAt = arrival.timestamp
    if (this.isCommitted(key, arrival.messageId)) return 'duplicate'
    return arrival.message ? this.journal.record(key, arrival.message) : 'recorded'
  }

  readState(key: string, options: ReadOptions = {}): ChatState {
    const row = this.rows.get(key)
    const now = this.clock.now()
    const damaged: Damage[] = []
    const state: ChatState = {
      checkpoint: readable('checkpoint', key, damaged, () => row?.readCheckpoint(now)),
      marker: readable('marker', key, damaged, () => row?.readMarker(now)),
      revision: row?.revision(now) ?? null,
    }
    const dueInMs = row?.dueInMs(now) ?? null
    if (dueInMs !== null) state.dueInMs = dueInMs
    if (options.journal) {
      const recordKey = `${key} ${this.journal.oldestId(key) ?? ''}`
      state.record = readable('record', recordKey, damaged, () => this.journal.oldest(key))
      state.outbox = this.outbox.entries(key, damaged)
    }
    if (damaged.length > 0) state.damaged = damaged
    return state
  }

  setAside(key: string, what: 'checkpoint' | 'marker'): string {
    if (!this.readState(key).damaged?.some((one) => one.what === what)) return 'nothing: it can be read'
    const name = `${what} of ${key}`
    this.asides.set(name, this.rows.get(key)?.takeOut(what) ?? '')
    return 'memory'
  }

  /** Chats that somebody is to look at: by a record due for `idleMs`, or by an appointment over for as long. */
  due(idleMs: number): string[] {
    const now = this.clock.now()
    const found = new Set(this.journal.due(idleMs))
    for (const key of this.waking) {
      const dueInMs = this.rows.get(key)?.dueInMs(now) ?? null
      if (dueInMs === null) this.waking.delete(key)
      else if (dueInMs <= -idleMs) found.add(key)
    }
    return [...found]
  }

  revision(key: string): string | null {
    return this.rows.get(key)?.revision(this.clock.now()) ?? null
  }

  /** `StateStore.commitState`: fenced by what this store has seen. */
  commitState(key: string, fence: number, commitId: string, effects: Effects): CommitResult {
    const receipt = this.rows.get(key)?.receipt(commitId)
    if (receipt) return receipt
    if (this.fence(key) > fence) return { outcome: 'refused', why: 'superseded' }
    const result = this.apply(key, effects)
    if (result.outcome === 'refused') return result
    const now = this.clock.now()
    const row = this.row(key)
    row.fence = fence
    if (effects.inboundId !== undefined) {
      row.noteCommitted(effects.inboundId, now + this.limits.dedupeMs, now, this.limits.dedupePerKey)
    }
    row.noteReceipt(commitId, result, now + this.limits.receiptMs, now)
    return result
  }

  /** Stores everything but `inboundId`, or nothing. The caller has checked the fence. */
  apply(key: string, effects: Effects): CommitResult {
    const now = this.clock.now()
    const { checkpoint, marker } = effects
    const row = this.row(key)
    if (checkpoint !== undefined && !row.matches(effects.expectedRevision ?? null, now)) {
      return { outcome: 'refused', why: 'superseded' }
    }
    // Everything that can fail to be JSON comes first: afterwards nothing throws.
    const checkpointJson = checkpoint ? JSON.stringify(checkpoint) : null
    const markerJson = marker ? JSON.stringify(marker) : null
    const outboxJson = (effects.outbox ?? []).map((entry) => JSON.stringify(entry))
    if (checkpoint && checkpointJson !== null) {
      const wakeInMs = effects.wakeInMs ?? null
      row.writeCheckpoint(checkpointJson, checkpoint, ttlOf(checkpoint), now, wakeInMs)
      if (wakeInMs !== null) this.waking.add(key)
    } else if (checkpoint === null) {
      row.clearCheckpoint()
    } else if (effects.wakeInMs === null) {
      row.forgetWake()
    }
    if (marker !== undefined) row.writeMarker(markerJson, marker?.ttlMs, now)
    for (const id of effects.ack ?? []) this.journal.acknowledge(key, id, row.keptRecord)
    this.outbox.write(key, outboxJson)
    this.outbox.forget(key, effects.forget ?? [])
    const result: CommitResult = { outcome: 'committed', revision: row.revision(now) }
    if (this.journal.knows(key)) result.more = this.journal.hasPending(key)
    return result
  }

  setCheckpointIf(key: string, checkpoint: FlowCheckpoint, expected: string | null, fence: number): boolean {
    const row = this.row(key)
    if (this.fence(key) > fence) return false
    const now = this.clock.now()
    if (row.revision(now) === checkpoint.revision) return true
    if (!row.matches(expected, now)) return false
    row.writeCheckpoint(JSON.stringify(checkpoint), checkpoint, ttlOf(checkpoint), now)
    row.fence = fence
    return true
  }

  clearCheckpointIf(key: string, expected: string | null, fence: number): boolean {
    const row = this.row(key)
    if (this.fence(key) > fence) return false
    const now = this.clock.now()
    // A copy of a removal that has landed.
    const done = expected !== null && row.revision(now) === `-${expected}`
    if (!done && !row.matches(expected, now)) return false
    row.clearCheckpoint()
    row.fence = fence
    return true
  }
}

/** What `read` gives, or null and an entry in `damaged` if it cannot be read. */
export function readable<T>(
  what: Damage['what'],
  key: string,
  damaged: Damage[],
  read: () => T | null | undefined,
): T | null {
  try {
    return read() ?? null
  } catch (error) {
    damaged.push({ what, key, error: error instanceof Error ? error.message : String(error) })
    return null
  }
}

/** @throws ConfigError if it is marked ephemeral without saying for how long. */
function ttlOf(checkpoint: FlowCheckpoint): number | undefined {
  if (!checkpoint.ephemeral) return undefined
  if (checkpoint.ttlMs !== undefined && checkpoint.ttlMs > 0) return checkpoint.ttlMs
  throw new ConfigError('An ephemeral checkpoint needs a positive ttlMs.', {
    option: 'ttlMs',
    value: checkpoint.ttlMs,
  })
}
