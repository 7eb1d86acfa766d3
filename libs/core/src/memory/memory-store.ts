/**
 * A store in this process' memory: complete, with the guarantees of the shared ones, for bots that run as one
 * process, for development and for tests. Nothing survives the process, and other processes do not see it
 * (`shared: false`).
 */
import type { Clock, Random } from '../contracts/clock.js'
import type { FlowCheckpoint } from '../contracts/checkpoint-store.js'
import { Journal, type DeadLetter, type JournalRecord } from '../contracts/journal.js'
import type { FencedLock, LockStore } from '../contracts/lock-store.js'
import type { Message } from '../contracts/message.js'
import type { MessageLog } from '../contracts/message-log.js'
import { Outbox, type OutboxEntry } from '../contracts/outbox.js'
import type {
  Arrival,
  ChatState,
  CommitResult,
  Effects,
  ReadOptions,
  StateStore,
} from '../contracts/state-store.js'
import type { Store } from '../contracts/store.js'
import type { UserRecord } from '../contracts/user-store.js'
import { parseDuration } from '../kernel/duration.js'
import type { Duration } from '../contracts/coordinator.js'
import { refuseUnknownOptions } from '../kernel/options.js'
import type { CoordinatorOptions } from '../runtime/session-coordinator.js'
import { systemClock, systemRandom } from '../runtime/system-clock.js'
import { MemoryCoordinationHub } from './memory-hub.js'
import { MemoryCoordinator } from './memory-coordinator.js'
import { MemoryData } from './memory-data.js'
import { attempt, MemoryLocks } from './memory-locks.js'
import { MemoryLog } from './memory-log.js'

export interface MemoryStoreOptions {
  /** How long a committed or acknowledged message id is a duplicate. Default 24 h. */
  dedupeMs?: Duration
  /** See `MemoryCoordinationHub`; for `coordinator()`. */
  maxIdleKeys?: number
  maxWaitingPerKey?: number
  clock?: Clock
  random?: Random
}

const DEDUPE_PER_KEY = 500
const RECEIPT_MS = 10 * 60_000

/** A lease backend for the scheduler (S2): fenced leases by name, apart from the application's locks. */
export type MemoryLeases = Pick<LockStore, 'acquireLockFenced' | 'renewLock' | 'releaseLock'>

export class MemoryStore implements Store, StateStore, LockStore {
  readonly kind = 'memory'
  readonly shared = false
  readonly journal: Journal
  readonly outbox: Outbox
  readonly log: MessageLog
  /** Where coordinators of this store meet. */
  readonly hub: MemoryCoordinationHub
  private readonly data: MemoryData
  private readonly locks: MemoryLocks
  private readonly leaseLocks: MemoryLocks
  private readonly users = new Map<string, { json: string; revision: string }>()
  private readonly clock: Clock
  private readonly random: Random

  constructor(options: MemoryStoreOptions = {}) {
    const known = ['dedupeMs', 'maxIdleKeys', 'maxWaitingPerKey', 'clock', 'random']
    refuseUnknownOptions('MemoryStore', options, known)
    this.clock = options.clock ?? systemClock
    this.random = options.random ?? systemRandom
    const dedupeMs = parseDuration('dedupeMs', options.dedupeMs ?? '1d', { minMs: 1 })
    this.data = new MemoryData(this.clock, { dedupeMs, dedupePerKey: DEDUPE_PER_KEY, receiptMs: RECEIPT_MS })
    const { maxIdleKeys, maxWaitingPerKey } = options
    this.hub = new MemoryCoordinationHub({
      clock: this.clock,
      dedupeMs,
      ...(maxIdleKeys === undefined ? {} : { maxIdleKeys }),
      ...(maxWaitingPerKey === undefined ? {} : { maxWaitingPerKey }),
    })
    this.hub.shareWith(this.data)
    this.journal = new MemoryJournal(this.data)
    this.outbox = new MemoryOutbox(this.data)
    this.log = new MemoryLog(this.clock)
    this.locks = new MemoryLocks(this.clock, this.random)
    this.leaseLocks = new MemoryLocks(this.clock, this.random)
  }

  /** A coordinator whose turns live beside this store's data, so that a turn commits in one step (C2, Z4). */
  coordinator(options: CoordinatorOptions = {}): MemoryCoordinator {
    return new MemoryCoordinator({
      clock: this.clock,
      random: this.random,
      ...options,
      hub: this.hub,
      sharesWith: (store) => store === this,
    })
  }

  leases(): MemoryLeases {
    return this.leaseLocks
  }

  getCheckpoint(key: string): Promise<FlowCheckpoint | null> {
    return attempt(() => this.data.find(key)?.readCheckpoint(this.clock.now()) ?? null)
  }

  setCheckpoint(key: string, checkpoint: FlowCheckpoint): Promise<void> {
    return attempt(() => {
      const ttlMs = checkpoint.ephemeral ? checkpoint.ttlMs : undefined
      this.data.row(key).writeCheckpoint(JSON.stringify(checkpoint), checkpoint, ttlMs, this.clock.now())
    })
  }

  clearCheckpoint(key: string): Promise<void> {
    return attempt(() => this.data.find(key)?.clearCheckpoint())
  }

  setCheckpointIf(
    key: string,
    checkpoint: FlowCheckpoint,
    expected: string | null,
    fence: number,
  ): Promise<boolean> {
    return attempt(() => this.data.setCheckpointIf(key, checkpoint, expected, fence))
  }

  clearCheckpointIf(key: string, expected: string | null, fence: number): Promise<boolean> {
    return attempt(() => this.data.clearCheckpointIf(key, expected, fence))
  }

  arrive(key: string, arrival: Arrival): Promise<'recorded' | 'duplicate'> {
    return attempt(() => this.data.arrive(key, arrival))
  }

  openState(key: string, fence: number, options?: ReadOptions): Promise<ChatState | null> {
    return attempt(() => (this.data.raiseFence(key, fence) ? this.data.readState(key, options) : null))
  }

  commitState(key: string, fence: number, commitId: string, effects: Effects): Promise<CommitResult> {
    return attempt(() => this.data.commitState(key, fence, commitId, effects))
  }

  setAside(key: string, what: 'checkpoint' | 'marker'): Promise<string> {
    return attempt(() => this.data.setAside(key, what))
  }

  isCommitted(key: string, inboundId: string): Promise<boolean> {
    return attempt(() => this.data.isCommitted(key, inboundId))
  }

  getUser(userId: string): Promise<UserRecord | null> {
    return attempt(() => {
      const user = this.users.get(userId)
      return user ? { data: JSON.parse(user.json) as UserRecord['data'], revision: user.revision } : null
    })
  }

  setUserIf(userId: string, data: UserRecord['data'], expected: string | null): Promise<string | null> {
    return attempt(() => {
      const json = JSON.stringify(data)
      if ((this.users.get(userId)?.revision ?? null) !== expected) return null
      const revision = this.random.uuid()
      this.users.set(userId, { json, revision })
      return revision
    })
  }

  touchChat(key: string, messageId: string, timestamp: number): Promise<void> {
    return attempt(() => {
      const row = this.data.row(key)
      row.lastMessageId = messageId
      row.lastMessageAt = timestamp
    })
  }

  acquireLockFenced(key: string, ttlMs: number): Promise<FencedLock | null> {
    return this.locks.acquireLockFenced(key, ttlMs)
  }

  renewLock(key: string, token: string, ttlMs: number): Promise<boolean> {
    return this.locks.renewLock(key, token, ttlMs)
  }

  releaseLock(key: string, token: string): Promise<boolean> {
    return this.locks.releaseLock(key, token)
  }
}

class MemoryJournal extends Journal {
  constructor(private readonly data: MemoryData) {
    super()
  }

  record(key: string, message: Message): Promise<'recorded' | 'duplicate'> {
    return attempt(() => this.data.journal.record(key, message))
  }

  oldest(key: string): Promise<JournalRecord | null> {
    return attempt(() => this.data.journal.oldest(key))
  }

  find(key: string, id: string): Promise<JournalRecord | null> {
    return attempt(() => this.data.journal.find(key, id))
  }

  fail(key: string, id: string, fence: number, error: string, retryMs: number | null): Promise<boolean> {
    return attempt(() => {
      if (!this.data.raiseFence(key, fence)) return false
      this.data.journal.fail(key, id, error, retryMs)
      return true
    })
  }

  stranded(idleMs: number, limit: number, keyPrefix = ''): Promise<string[]> {
    return attempt(() => {
      const due = this.data.due(idleMs).filter((key) => key.startsWith(keyPrefix))
      return due.filter((key) => !(this.data.turns?.isBusy(key) ?? false)).slice(0, limit)
    })
  }

  deadLetters(limit: number): Promise<DeadLetter[]> {
    return attempt(() => this.data.journal.deadLetters(limit))
  }

  retry(key: string, id: string): Promise<boolean> {
    return attempt(() => this.data.journal.retry(key, id))
  }

  discard(key: string, id: string): Promise<boolean> {
    return attempt(() => this.data.journal.discard(key, id))
  }
}

class MemoryOutbox extends Outbox {
  constructor(private readonly data: MemoryData) {
    super()
  }

  entries(chatKey: string): Promise<OutboxEntry[]> {
    return attempt(() => this.data.outbox.entries(chatKey))
  }

  settle(chatKey: string, key: string, outcome: Parameters<Outbox['settle']>[2]): Promise<void> {
    return attempt(() => this.data.outbox.settle(chatKey, key, outcome))
  }
}
