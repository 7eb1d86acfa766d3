/**
 * `MongoStore`: everything a bot keeps, in MongoDB 5.0 or later. Turns live in another backend (Redis, or the in-process
 * hub), and commits are fenced here all the same (DESIGN 3, Z4).
 */
import {
  LentLogger,
  ConfigError,
  parseDuration,
  refuseUnknownOptions,
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
import { MongoChatState } from './chat-state.js'
import { MongoJournal } from './mongo-journal.js'
import { MongoLink } from './mongo-link.js'
import { MongoLocks, type MongoLeases } from './mongo-locks.js'
import { MongoLog } from './mongo-log.js'
import { MongoOutbox } from './mongo-outbox.js'
import { MongoUsers } from './mongo-users.js'
import { Sweep } from './sweep.js'
import { readTarget, type TargetOptions } from './target.js'

export interface MongoStoreOptions extends TargetOptions {
  /** Collections are named `<prefix>_chats`, …: two prefixes never see each other (C4). Default `botmesh`. */
  prefix?: string
  /** How long committed and acknowledged message ids are duplicates. Default 24 h. The same on every replica. */
  dedupeMs?: Duration
  /** How long `open` tries to reach the server. Default 30 s. */
  startTimeoutMs?: Duration
  clock?: Clock
  random?: Random
  logger?: Logger
}

const OPTIONS = [
  ...['url', 'client', 'database', 'connections', 'callTimeoutMs', 'prefix', 'dedupeMs', 'startTimeoutMs'],
  ...['clock', 'random', 'logger'],
]

const PREFIX_FORM = 'letters, digits and underscores, beginning with a letter, at most 40'

/** @throws ConfigError */
function readPrefix(prefix: unknown = 'botmesh'): string {
  if (typeof prefix === 'string' && /^[A-Za-z]\w{0,39}$/.test(prefix)) return prefix
  const shown = typeof prefix === 'string' ? JSON.stringify(prefix.slice(0, 60)) : typeof prefix
  throw new ConfigError(
    `Option "prefix" is ${shown}; accepted: ${PREFIX_FORM} (it begins the collections' names).`,
    {
      option: 'prefix',
      value: prefix,
      accepted: PREFIX_FORM,
    },
  )
}

export class MongoStore implements Store, StateStore, LockStore {
  readonly kind = 'mongo'
  readonly shared = true
  readonly journal: Journal
  readonly outbox: Outbox
  readonly log: MessageLog
  private readonly link: MongoLink
  private readonly state: MongoChatState
  private readonly users: MongoUsers
  private readonly locks: MongoLocks
  private readonly leaseLocks: MongoLocks
  private readonly ownLog: MongoLog
  private readonly old: Sweep
  private wasOpened = false
  private readonly logger: LentLogger

  /** @throws ConfigError for an option that is unknown, missing (`url`) or impossible. Connects when first used. */
  constructor(options: MongoStoreOptions) {
    refuseUnknownOptions('MongoStore', options, OPTIONS)
    const dedupeMs = parseDuration('dedupeMs', options.dedupeMs ?? '1d', { minMs: 2000 })
    const random = options.random ?? systemRandom
    this.logger = new LentLogger(options.logger)
    this.link = new MongoLink({
      target: readTarget(options),
      prefix: readPrefix(options.prefix),
      startTimeoutMs: parseDuration('startTimeoutMs', options.startTimeoutMs ?? '30s'),
      clock: options.clock ?? systemClock,
      random,
      logger: this.logger,
    })
    const journal = new MongoJournal(this.link, random, { dedupeMs })
    this.journal = journal
    this.outbox = new MongoOutbox(this.link)
    this.state = new MongoChatState(this.link, journal, { dedupeMs })
    this.users = new MongoUsers(this.link, random)
    this.ownLog = new MongoLog(this.link)
    this.log = this.ownLog
    this.locks = new MongoLocks(this.link, random, 'lock')
    this.leaseLocks = new MongoLocks(this.link, random, 'lease')
    this.old = new Sweep(this.link, { dedupeMs })
  }

  useLogger(logger: Logger): void {
    this.logger.lend(logger)
  }

  /** A lease backend for the scheduler (S2). */
  leases(): MongoLeases {
    return this.leaseLocks
  }

  /** True from `open` until `close`. */
  get isOpen(): boolean {
    return this.wasOpened
  }

  /** Connects, and makes collections and indexes where needed. @throws ConfigError, StoreError */
  async open(): Promise<void> {
    await this.link.open()
    this.wasOpened = true
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
