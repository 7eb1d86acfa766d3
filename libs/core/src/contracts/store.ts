/**
 * A store as the bot takes it. A custom store implements `CheckpointStore` and `UserStore`; what it has besides
 * decides what the bot can promise, and the bot warns at start about what is missing.
 */
import type { CheckpointStore } from './checkpoint-store.js'
import type { Journal } from './journal.js'
import type { Logger } from './logger.js'
import type { MessageLog } from './message-log.js'
import type { Outbox } from './outbox.js'
import type { StateStore } from './state-store.js'
import type { UserStore } from './user-store.js'

export interface Store extends CheckpointStore, UserStore, Partial<StateStore> {
  /** For messages and logs, such as `redis`. */
  readonly kind: string
  /** False: each process has data of its own (memory, SQLite); coordination across processes warns (S1). */
  readonly shared: boolean
  readonly journal?: Journal
  readonly outbox?: Outbox
  readonly log?: MessageLog
  /** Lends a logger, before `open`: a store that was given none logs through it. The first one stays. */
  useLogger?(logger: Logger): void
  /** Connects and checks. Idempotent. @throws ConfigError, StoreError */
  open?(): Promise<void>
  /**
   * True from `open` until `close`; a connection that some other call has made by itself does not count. A store that
   * somebody opened before the bots start is theirs to close; absent counts as false: the last bot to stop closes it.
   */
  readonly isOpen?: boolean
  /** Closes what this store opened itself (not a client that was passed in). Idempotent. */
  close?(): Promise<void>
  /** The chat's row: last message id and time; without coordination or durability it is not called. */
  touchChat?(key: string, messageId: string, timestamp: number): Promise<void>
}
