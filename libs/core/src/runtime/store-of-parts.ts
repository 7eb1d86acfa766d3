/**
 * For stores: a store whose work is done by parts of it (chat state, users, locks, journal, outbox, log) over one
 * connection. It hands calls on, and opens and closes the parts in their order.
 */
import type { CheckpointStore, FlowCheckpoint } from '../contracts/checkpoint-store.js'
import type { Journal } from '../contracts/journal.js'
import type { FencedLock, LockStore } from '../contracts/lock-store.js'
import type { Logger } from '../contracts/logger.js'
import type { MessageLog } from '../contracts/message-log.js'
import type { Outbox } from '../contracts/outbox.js'
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
import type { BackgroundSweep } from './background-sweep.js'
import type { LentLogger } from './lent-logger.js'

type Locks = Pick<LockStore, 'acquireLockFenced' | 'renewLock' | 'releaseLock'>

export interface StoreParts {
  /** What all parts reach the server through: opened first, closed last. */
  link: { open(): Promise<void>; close(): Promise<void> }
  state: Required<StateStore> & Required<CheckpointStore> & Required<Pick<Store, 'touchChat'>>
  users: {
    get(userId: string): Promise<UserRecord | null>
    setIf(userId: string, data: UserRecord['data'], expected: string | null): Promise<string | null>
  }
  /** The application's locks, and apart from them the scheduler's leases. */
  locks: Locks
  leases: Locks
  journal: Journal
  outbox: Outbox
  /** `close` ends its subscriptions. */
  log: MessageLog & { close(): Promise<void> }
  /** Removes what has had its time; hears of each commit. */
  sweep: Pick<BackgroundSweep, 'hint' | 'paused'>
  logger: LentLogger
}

export abstract class StoreOfParts implements Store, StateStore, LockStore {
  abstract readonly kind: string
  abstract readonly shared: boolean
  readonly journal: Journal
  readonly outbox: Outbox
  readonly log: MessageLog
  private wasOpened = false

  protected constructor(private readonly parts: StoreParts) {
    this.journal = parts.journal
    this.outbox = parts.outbox
    this.log = parts.log
  }

  useLogger(logger: Logger): void {
    this.parts.logger.lend(logger)
  }

  /** A lease backend for the scheduler (S2). */
  leases(): Locks {
    return this.parts.leases
  }

  /** True from `open` until `close`. */
  get isOpen(): boolean {
    return this.wasOpened
  }

  /** Connects, and makes or updates what the store keeps its data in. @throws ConfigError, StoreError */
  async open(): Promise<void> {
    await this.parts.link.open()
    this.wasOpened = true
  }

  async close(): Promise<void> {
    this.wasOpened = false
    await this.parts.log.close()
    await this.parts.sweep.paused(() => this.parts.link.close())
  }

  getCheckpoint(key: string): Promise<FlowCheckpoint | null> {
    return this.parts.state.getCheckpoint(key)
  }

  async setCheckpoint(key: string, checkpoint: FlowCheckpoint): Promise<void> {
    await this.parts.state.setCheckpoint(key, checkpoint)
  }

  async clearCheckpoint(key: string): Promise<void> {
    await this.parts.state.clearCheckpoint(key)
  }

  async setCheckpointIf(
    key: string,
    checkpoint: FlowCheckpoint,
    expectedRevision: string | null,
    fence: number,
  ): Promise<boolean> {
    return this.parts.state.setCheckpointIf(key, checkpoint, expectedRevision, fence)
  }

  async clearCheckpointIf(key: string, expectedRevision: string | null, fence: number): Promise<boolean> {
    return this.parts.state.clearCheckpointIf(key, expectedRevision, fence)
  }

  arrive(key: string, arrival: Arrival): Promise<'recorded' | 'duplicate'> {
    return this.parts.state.arrive(key, arrival)
  }

  openState(key: string, fence: number, options?: ReadOptions): Promise<ChatState | null> {
    return this.parts.state.openState(key, fence, options)
  }

  async commitState(key: string, fence: number, commitId: string, effects: Effects): Promise<CommitResult> {
    const result = await this.parts.state.commitState(key, fence, commitId, effects)
    this.parts.sweep.hint()
    return result
  }

  setAside(key: string, what: 'checkpoint' | 'marker'): Promise<string> {
    return this.parts.state.setAside(key, what)
  }

  isCommitted(key: string, inboundId: string): Promise<boolean> {
    return this.parts.state.isCommitted(key, inboundId)
  }

  getUser(userId: string): Promise<UserRecord | null> {
    return this.parts.users.get(userId)
  }

  async setUserIf(
    userId: string,
    data: Record<string, unknown>,
    expectedRevision: string | null,
  ): Promise<string | null> {
    return this.parts.users.setIf(userId, data, expectedRevision)
  }

  touchChat(key: string, messageId: string, timestamp: number): Promise<void> {
    return this.parts.state.touchChat(key, messageId, timestamp)
  }

  acquireLockFenced(key: string, ttlMs: number): Promise<FencedLock | null> {
    return this.parts.locks.acquireLockFenced(key, ttlMs)
  }

  renewLock(key: string, token: string, ttlMs: number): Promise<boolean> {
    return this.parts.locks.renewLock(key, token, ttlMs)
  }

  releaseLock(key: string, token: string): Promise<boolean> {
    return this.parts.locks.releaseLock(key, token)
  }
}
