/**
 * What the SQL stores share: a store over one `SqlFlavor`. Packages extend it with their own options; turns live in
 * another backend (Redis, or the in-process hub), and commits are fenced here all the same (DESIGN 3, Z4).
 */
import {
  LentLogger,
  ConfigError,
  parseDuration,
  systemClock,
  systemRandom,
  type Arrival,
  type ChatState,
  type Clock,
  type CommitResult,
  type Duration,
  type Effects,
  type FencedLock,
  type FlowCheckpoint,
  type Journal,
  type LockStore,
  type Logger,
  type MessageLog,
  type Outbox,
  type Random,
  type ReadOptions,
  type StateStore,
  type Store,
  type UserRecord,
} from '@botmesh/core'
import { ChatRows } from './chat-rows.js'
import { SqlChatState } from './chat-state.js'
import type { SqlFlavor } from './flavor.js'
import { SqlJournal } from './sql-journal.js'
import { SqlLink } from './sql-link.js'
import { SqlLocks, type SqlLeases } from './sql-locks.js'
import { SqlLog } from './sql-log.js'
import { SqlOutbox } from './sql-outbox.js'
import { SqlUsers } from './sql-users.js'
import { Statements } from './statements.js'
import { Sweep } from './sweep.js'
import { tableName } from './tables.js'

/** Options that every SQL store takes. */
export interface SqlStoreOptions {
  /** Tables are named `<prefix>_chats`, …: two prefixes never see each other (C4). Default `botmesh`. */
  prefix?: string
  /** How long committed and acknowledged message ids are duplicates. Default 24 h. The same on every replica. */
  dedupeMs?: Duration
  /** How long `open` tries to reach the database. Default 30 s. */
  startTimeoutMs?: Duration
  clock?: Clock
  random?: Random
  logger?: Logger
}

export const SQL_STORE_OPTIONS = [
  'prefix',
  'dedupeMs',
  'startTimeoutMs',
  'clock',
  'random',
  'logger',
] as const

const PREFIX_FORM = 'letters, digits and underscores, beginning with a letter, at most 40'

/** @throws ConfigError */
function readPrefix(prefix: unknown = 'botmesh'): string {
  if (typeof prefix === 'string' && /^[A-Za-z]\w{0,39}$/.test(prefix)) return prefix
  const shown = typeof prefix === 'string' ? JSON.stringify(prefix.slice(0, 60)) : typeof prefix
  throw new ConfigError(
    `Option "prefix" is ${shown}; accepted: ${PREFIX_FORM} (it begins the tables' names).`,
    {
      option: 'prefix',
      value: prefix,
      accepted: PREFIX_FORM,
    },
  )
}

export abstract class SqlStore implements Store, StateStore, LockStore {
  readonly kind: string
  readonly shared: boolean
  readonly journal: Journal
  readonly outbox: Outbox
  readonly log: MessageLog
  private readonly link: SqlLink
  private readonly state: SqlChatState
  private readonly users: SqlUsers
  private readonly locks: SqlLocks
  private readonly leaseLocks: SqlLocks
  private readonly ownLog: SqlLog
  private readonly old: Sweep
  private wasOpened = false
  private readonly logger: LentLogger

  /** @throws ConfigError for an impossible option. Connects when first used. */
  protected constructor(flavor: SqlFlavor, options: SqlStoreOptions) {
    const prefix = readPrefix(options.prefix)
    const dedupeMs = parseDuration('dedupeMs', options.dedupeMs ?? '1d', { minMs: 2000 })
    const random = options.random ?? systemRandom
    this.logger = new LentLogger(options.logger)
    this.kind = flavor.kind
    this.shared = flavor.shared
    this.link = new SqlLink({
      ...{ flavor, prefix, random },
      startTimeoutMs: parseDuration('startTimeoutMs', options.startTimeoutMs ?? '30s'),
      clock: options.clock ?? systemClock,
      logger: this.logger,
    })
    const statements = new Statements()
    const rows = new ChatRows(flavor, statements)
    const journal = new SqlJournal(this.link, rows, statements)
    const outbox = new SqlOutbox(this.link, statements)
    this.journal = journal
    this.outbox = outbox
    this.state = new SqlChatState(this.link, rows, journal, outbox, statements, { dedupeMs })
    this.users = new SqlUsers(this.link, rows, random)
    this.ownLog = new SqlLog(this.link, tableName(prefix, 'log'))
    this.log = this.ownLog
    this.locks = new SqlLocks(this.link, rows, random, 'lock')
    this.leaseLocks = new SqlLocks(this.link, rows, random, 'lease')
    this.old = new Sweep(this.link, { dedupeMs })
  }

  useLogger(logger: Logger): void {
    this.logger.lend(logger)
  }

  /** A lease backend for the scheduler (S2). */
  leases(): SqlLeases {
    return this.leaseLocks
  }

  /** Connects, and creates or updates the tables. @throws ConfigError, StoreError */
  async open(): Promise<void> {
    await this.link.open()
    this.wasOpened = true
  }

  /** True from `open` until `close`. */
  get isOpen(): boolean {
    return this.wasOpened
  }

  async close(): Promise<void> {
    this.wasOpened = false
    await this.ownLog.close()
    await this.old.settled()
    await this.link.close()
  }

  getCheckpoint(key: string): Promise<FlowCheckpoint | null> {
    return this.state.getCheckpoint(key)
  }

  async setCheckpoint(key: string, checkpoint: FlowCheckpoint): Promise<void> {
    await this.state.setCheckpoint(key, checkpoint)
  }

  async clearCheckpoint(key: string): Promise<void> {
    await this.state.clearCheckpoint(key)
  }

  async setCheckpointIf(
    key: string,
    checkpoint: FlowCheckpoint,
    expectedRevision: string | null,
    fence: number,
  ): Promise<boolean> {
    return this.state.setCheckpointIf(key, checkpoint, expectedRevision, fence)
  }

  async clearCheckpointIf(key: string, expectedRevision: string | null, fence: number): Promise<boolean> {
    return this.state.clearCheckpointIf(key, expectedRevision, fence)
  }

  arrive(key: string, arrival: Arrival): Promise<'recorded' | 'duplicate'> {
    return this.state.arrive(key, arrival)
  }

  openState(key: string, fence: number, options?: ReadOptions): Promise<ChatState | null> {
    return this.state.openState(key, fence, options)
  }

  async commitState(key: string, fence: number, commitId: string, effects: Effects): Promise<CommitResult> {
    const result = await this.state.commitState(key, fence, commitId, effects)
    this.old.hint()
    return result
  }

  setAside(key: string, what: 'checkpoint' | 'marker'): Promise<string> {
    return this.state.setAside(key, what)
  }

  isCommitted(key: string, inboundId: string): Promise<boolean> {
    return this.state.isCommitted(key, inboundId)
  }

  getUser(userId: string): Promise<UserRecord | null> {
    return this.users.get(userId)
  }

  async setUserIf(
    userId: string,
    data: Record<string, unknown>,
    expectedRevision: string | null,
  ): Promise<string | null> {
    return this.users.setIf(userId, data, expectedRevision)
  }

  touchChat(key: string, messageId: string, timestamp: number): Promise<void> {
    return this.state.touchChat(key, messageId, timestamp)
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
