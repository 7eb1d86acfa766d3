/**
 * `RedisStore`: everything a bot keeps, in one Redis, in the same place as the turns of its coordinators, so that a
 * turn reads and commits its chat in its own trips (Z4).
 */
import {
  LentLogger,
  parseDuration,
  refuseUnknownOptions,
  systemClock,
  systemRandom,
  type Arrival,
  type ChatState,
  type Clock,
  type CommitResult,
  type CoordinatorOptions,
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
import { effectsArgs, recordJson } from './effects-args.js'
import { escapeName, unescapeName } from './keys.js'
import { ShardedPlace } from './layout.js'
import {
  DEFAULT_DEDUPE,
  IDS_PER_CHAT,
  REDIS_OPTIONS,
  RedisCoordinator,
  WIRING,
  readWaiting,
  type CoordinatorWiring,
} from './redis-coordinator.js'
import { RedisJournal, RedisOutbox } from './redis-journal.js'
import { RedisLocks, type RedisLeases } from './redis-locks.js'
import { RedisLog } from './redis-log.js'
import { identityOf, readPlace, type RedisOptions } from './redis-options.js'
import { readCommit, readState } from './replies.js'
import { StoreShards } from './store-shards.js'
import { readCheckpoint, readMarker, readUser, type Damage } from './stored-values.js'

export interface RedisStoreOptions extends RedisOptions {
  /** How long committed and acknowledged message ids are duplicates, and the trace of an idle chat is kept. Default
   * 24 h. The same on every replica. */
  dedupeMs?: Duration
  /** For `coordinator()`: longest queue of one chat. Default 100,000. */
  maxWaitingPerChat?: number
  /** How long `open` tries to reach Redis. Default 30 s. */
  startTimeoutMs?: Duration
  clock?: Clock
  random?: Random
  logger?: Logger
}

const OWN_OPTIONS = ['startTimeoutMs', 'clock', 'random', 'logger'] as const

export class RedisStore implements Store, StateStore, LockStore {
  readonly kind = 'redis'
  readonly shared = true
  readonly journal: Journal
  readonly outbox: Outbox
  readonly log: MessageLog
  /** Names where the data is: coordinators of the same place commit together with this store. */
  readonly place: string
  private readonly calls: StoreShards
  private readonly locks: RedisLocks
  private readonly leaseLocks: RedisLocks
  private readonly ownLog: RedisLog
  private readonly random: Random
  private wasOpened = false
  private readonly logger: LentLogger

  /** @throws ConfigError for an option that is unknown, missing (`url`) or impossible. Connects when first used. */
  constructor(private readonly options: RedisStoreOptions & { [WIRING]?: CoordinatorWiring }) {
    refuseUnknownOptions('RedisStore', options, [...REDIS_OPTIONS, ...OWN_OPTIONS])
    const windowMs = parseDuration('dedupeMs', options.dedupeMs ?? DEFAULT_DEDUPE, { minMs: 2000 })
    const settings = readPlace('RedisStore', options, windowMs)
    this.place = identityOf(settings)
    this.random = options.random ?? systemRandom
    this.logger = new LentLogger(options.logger)
    this.calls = new StoreShards(new ShardedPlace(settings), {
      waitingPerChat: readWaiting(options.maxWaitingPerChat),
      idsPerChat: IDS_PER_CHAT,
      startTimeoutMs: parseDuration('startTimeoutMs', options.startTimeoutMs ?? '30s'),
      clock: options.clock ?? systemClock,
      logger: this.logger,
      patch: options[WIRING]?.patch,
    })
    this.journal = new RedisJournal(this.calls)
    this.outbox = new RedisOutbox(this.calls)
    this.ownLog = new RedisLog(this.calls)
    this.log = this.ownLog
    const { random, logger } = this
    this.locks = new RedisLocks(this.calls, { random, logger, kind: 'lock' })
    this.leaseLocks = new RedisLocks(this.calls, { random, logger, kind: 'lease' })
  }

  /** A coordinator in the same place, with this store's connection settings and prefix (C2). */
  coordinator(options: CoordinatorOptions = {}): RedisCoordinator {
    const { startTimeoutMs: _startTimeoutMs, ...shared } = this.options
    return new RedisCoordinator({ ...shared, ...options })
  }

  /** A lease backend for the scheduler (S2). */
  leases(): RedisLeases {
    return this.leaseLocks
  }

  useLogger(logger: Logger): void {
    this.logger.lend(logger)
  }

  /** True from `open` until `close`. */
  get isOpen(): boolean {
    return this.wasOpened
  }

  async open(): Promise<void> {
    await this.calls.open()
    this.wasOpened = true
  }

  async close(): Promise<void> {
    this.wasOpened = false
    this.ownLog.close()
    this.calls.close()
  }

  async getCheckpoint(key: string): Promise<FlowCheckpoint | null> {
    const state = await this.calls
      .of(key)
      .entry('getCheckpoint', key, { token: 'G', read: this.stateReader(key) })
    return (await this.checked(key, state))?.checkpoint ?? null
  }

  async setCheckpoint(key: string, checkpoint: FlowCheckpoint): Promise<void> {
    await this.write('setCheckpoint', key, '', checkpoint.revision, { checkpoint }, 'u')
  }

  async clearCheckpoint(key: string): Promise<void> {
    await this.write('clearCheckpoint', key, '', this.random.uuid(), { checkpoint: null }, 'u')
  }

  async setCheckpointIf(
    key: string,
    checkpoint: FlowCheckpoint,
    expectedRevision: string | null,
    fence: number,
  ): Promise<boolean> {
    const effects = { checkpoint, expectedRevision }
    const result = await this.write('setCheckpointIf', key, String(fence), this.random.uuid(), effects)
    return result.outcome === 'committed'
  }

  async clearCheckpointIf(key: string, expectedRevision: string | null, fence: number): Promise<boolean> {
    const effects = { checkpoint: null, expectedRevision }
    const result = await this.write('clearCheckpointIf', key, String(fence), this.random.uuid(), effects)
    return result.outcome === 'committed'
  }

  arrive(key: string, arrival: Arrival): Promise<'recorded' | 'duplicate'> {
    return this.calls.of(key).entry('arrive', key, {
      token: `J${arrival.timestamp}`,
      more: [escapeName(arrival.messageId), arrival.message ? recordJson(arrival.message) : ''],
      read: (line) => (line === '+' ? 'recorded' : 'duplicate'),
    })
  }

  async openState(key: string, fence: number, options: ReadOptions = {}): Promise<ChatState | null> {
    const state = await this.calls.of(key).entry('openState', key, {
      token: `O${fence}`,
      more: [options.journal ? 'j' : ''],
      read: this.stateReader(key),
    })
    return this.checked(key, state)
  }

  commitState(key: string, fence: number, commitId: string, effects: Effects): Promise<CommitResult> {
    return this.write('commitState', key, String(fence), commitId, effects)
  }

  async setAside(key: string, what: 'checkpoint' | 'marker'): Promise<string> {
    const calls = this.calls.of(key)
    const { base } = calls.options.keys
    const text = await calls.command<string | null>('setAside', 'hget', [
      `${base}c:${escapeName(key)}`,
      what === 'checkpoint' ? 'c' : 'm',
    ])
    const damaged: Damage[] = []
    if (text !== null) (what === 'checkpoint' ? readCheckpoint : readMarker)(key, text, damaged)
    if (damaged.length === 0) return 'nothing: it can be read'
    await calls.moveAside(key, damaged)
    return `hash ${base}damaged`
  }

  isCommitted(key: string, inboundId: string): Promise<boolean> {
    const token = `M${escapeName(inboundId)}`
    return this.calls.of(key).entry('isCommitted', key, { token, read: (line) => line === 'M1' })
  }

  async getUser(userId: string): Promise<UserRecord | null> {
    const calls = this.calls.of(userId)
    const key = calls.options.keys.user(userId)
    const row = await calls.command<(string | null)[]>('getUser', 'hmget', [key, 'd', 'r'])
    const [json, revision] = row
    if (!json || !revision) return null
    const damaged: Damage[] = []
    const data = readUser(userId, json, damaged)
    if (data) return { data, revision }
    await calls.moveAside(userId, damaged)
    await calls.command('getUser', 'rename', [key, `${key}:damaged`])
    return null
  }

  async setUserIf(
    userId: string,
    data: Record<string, unknown>,
    expectedRevision: string | null,
  ): Promise<string | null> {
    const revision = this.random.uuid()
    const args = [expectedRevision ?? '', JSON.stringify(data), revision]
    const calls = this.calls.of(userId)
    const written = await calls.script('set-user-if', calls.options.keys.user(userId), args)
    return written === 1 ? revision : null
  }

  async touchChat(key: string, messageId: string, timestamp: number): Promise<void> {
    await this.arrive(key, { messageId, timestamp })
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

  private write(
    operation: string,
    key: string,
    fence: string,
    commitId: string,
    effects: Effects,
    flags = '',
  ): Promise<CommitResult> {
    const args = effectsArgs(escapeName(key), escapeName(commitId), effects, flags)
    return this.calls.of(key).entry(operation, key, {
      token: `P${fence}`,
      more: [String(args.length), ...args],
      read: (line) => readCommit(line),
    })
  }

  private stateReader(
    key: string,
  ): (line: string, payloads: Parameters<typeof readState>[3]) => ChatState | null {
    return (line, payloads) => {
      if (line === 'o') return null
      const bar = line.indexOf('|')
      const revision = bar === 1 ? null : unescapeName(line.slice(1, bar))
      return readState(key, revision, line.slice(bar + 1), payloads)
    }
  }

  /** Moves aside what was damaged; the state says so too, for whoever reports it to the application. */
  private async checked(key: string, state: ChatState | null): Promise<ChatState | null> {
    if (state?.damaged) await this.calls.of(key).moveAside(key, state.damaged)
    return state
  }
}
