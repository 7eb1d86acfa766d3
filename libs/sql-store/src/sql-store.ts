/**
 * What the SQL stores share: a store over one `SqlFlavor`. Packages extend it with their own options; turns live in
 * another backend (Redis, or the in-process hub), and commits are fenced here all the same (Z4).
 */
import {
  LentLogger,
  StoreOfParts,
  parseDuration,
  readStorePrefix,
  systemClock,
  systemRandom,
  type Clock,
  type Duration,
  type Logger,
  type Random,
  type StoreParts,
} from '@botmesh/core'
import { ChatRows } from './chat-rows.js'
import { SqlChatState } from './chat-state.js'
import type { SqlFlavor } from './flavor.js'
import { SqlJournal } from './sql-journal.js'
import { SqlLink } from './sql-link.js'
import { SqlLocks } from './sql-locks.js'
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

export abstract class SqlStore extends StoreOfParts {
  readonly kind: string
  readonly shared: boolean

  /** @throws ConfigError for an impossible option. Connects when first used. */
  protected constructor(flavor: SqlFlavor, options: SqlStoreOptions) {
    super(partsOf(flavor, options))
    this.kind = flavor.kind
    this.shared = flavor.shared
  }
}

function partsOf(flavor: SqlFlavor, options: SqlStoreOptions): StoreParts {
  const prefix = readStorePrefix('tables', options.prefix)
  const dedupeMs = parseDuration('dedupeMs', options.dedupeMs ?? '1d', { minMs: 2000 })
  const random = options.random ?? systemRandom
  const logger = new LentLogger(options.logger)
  const link = new SqlLink({
    ...{ flavor, prefix, random, logger },
    startTimeoutMs: parseDuration('startTimeoutMs', options.startTimeoutMs ?? '30s'),
    clock: options.clock ?? systemClock,
  })
  const statements = new Statements()
  const rows = new ChatRows(flavor, statements)
  const journal = new SqlJournal(link, rows, statements)
  const outbox = new SqlOutbox(link, statements)
  return {
    ...{ link, logger, journal, outbox },
    state: new SqlChatState(link, rows, journal, outbox, statements, { dedupeMs }),
    users: new SqlUsers(link, rows, random),
    log: new SqlLog(link, tableName(prefix, 'log')),
    locks: new SqlLocks(link, rows, { random, logger, kind: 'lock' }),
    leases: new SqlLocks(link, rows, { random, logger, kind: 'lease' }),
    sweep: new Sweep(link, { dedupeMs }),
  }
}
