/**
 * `MongoStore`: everything a bot keeps, in MongoDB 5.0 or later. Turns live in another backend (Redis, or the in-process
 * hub), and commits are fenced here all the same (Z4).
 */
import {
  LentLogger,
  StoreOfParts,
  parseDuration,
  readStorePrefix,
  refuseUnknownOptions,
  systemClock,
  systemRandom,
  type Clock,
  type Duration,
  type Logger,
  type Random,
  type StoreParts,
} from '@botmesh/core'
import { MongoChatState } from './chat-state.js'
import { MongoJournal } from './mongo-journal.js'
import { MongoLink } from './mongo-link.js'
import { MongoLocks } from './mongo-locks.js'
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

export class MongoStore extends StoreOfParts {
  readonly kind = 'mongo'
  readonly shared = true

  /** @throws ConfigError for an option that is unknown, missing (`url`) or impossible. Connects when first used. */
  constructor(options: MongoStoreOptions) {
    refuseUnknownOptions('MongoStore', options, OPTIONS)
    super(partsOf(options))
  }
}

function partsOf(options: MongoStoreOptions): StoreParts {
  const dedupeMs = parseDuration('dedupeMs', options.dedupeMs ?? '1d', { minMs: 2000 })
  const random = options.random ?? systemRandom
  const logger = new LentLogger(options.logger)
  const link = new MongoLink({
    target: readTarget(options),
    prefix: readStorePrefix('collections', options.prefix),
    startTimeoutMs: parseDuration('startTimeoutMs', options.startTimeoutMs ?? '30s'),
    clock: options.clock ?? systemClock,
    random,
    logger,
  })
  const journal = new MongoJournal(link, random, { dedupeMs })
  return {
    ...{ link, logger, journal },
    outbox: new MongoOutbox(link),
    state: new MongoChatState(link, journal, { dedupeMs }),
    users: new MongoUsers(link, random),
    log: new MongoLog(link),
    locks: new MongoLocks(link, { random, logger, kind: 'lock' }),
    leases: new MongoLocks(link, { random, logger, kind: 'lease' }),
    sweep: new Sweep(link, { dedupeMs }),
  }
}
