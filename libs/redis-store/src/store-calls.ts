/** How the store reaches Redis: one connection, opened when first needed, calls of one tick in one script call. */
import { ConfigError, CoordinationUnavailableError, StoreError, type Clock, type Logger } from '@botmesh/core'
import { BatchQueue, type Entry } from './batch-queue.js'
import { escapeName, type ShardKeys } from './keys.js'
import type { ShardedPlace } from './layout.js'
import type { Line, LineEvents, LineRole } from './line.js'
import { refusalBehind } from './mesh.js'
import { whyNotNow } from './not-now.js'
import { Opening } from './opening.js'
import { composeBatch, plainScript, type PlainScript, type ScriptPatch } from './scripts.js'
import type { Damage } from './stored-values.js'

export interface StoreCallsOptions {
  place: ShardedPlace
  /** Of one of its shards. */
  keys: ShardKeys
  waitingPerChat: number
  idsPerChat: number
  startTimeoutMs: number
  clock: Clock
  logger: Logger
  patch?: ScriptPatch | undefined
}

/** After it a call's fate is unknown and it rejects. */
const CALL_TIMEOUT_MS = 10_000

export class StoreCalls {
  private readonly link: Line
  private readonly batches: BatchQueue
  private opening: Opening | null = null
  private opened = false
  /** Counts closings: what was asked for before one is not sent after it. */
  closings = 0

  constructor(readonly options: StoreCallsOptions) {
    const { place, keys, patch, waitingPerChat, idsPerChat } = options
    const { windowMs } = place.settings
    this.link = this.line('store')
    this.batches = new BatchQueue({
      link: this.link,
      script: composeBatch({ waitingPerChat, idsPerChat, windowMs }, patch, place.sharded),
      holders: keys.holders,
      base: keys.base,
      leaseMs: () => 1,
      timeoutMs: () => CALL_TIMEOUT_MS,
      onNews: () => undefined,
    })
  }

  /** A connection to this shard; closed by who asked for it. */
  line(role: LineRole, events: LineEvents = {}): Line {
    const { place, keys, clock, logger } = this.options
    return place.line({ clock, logger }, { role, slot: keys.slot, ...events })
  }

  /** Idempotent. @throws ConfigError at once for what can never work, StoreError after `startTimeoutMs`. */
  async open(): Promise<void> {
    if (this.opened) return
    const opening = (this.opening ??= this.begin())
    try {
      await opening.result
      this.opened ||= this.opening === opening
    } catch (error) {
      if (this.opening === opening) this.link.close()
      throw this.failure(error, 'open')
    } finally {
      if (this.opening === opening) this.opening = null
    }
  }

  private begin(): Opening {
    const { startTimeoutMs, place, keys, clock, logger } = this.options
    const attempt = async (withinMs: number): Promise<void> => {
      await this.link.open(withinMs)
      await place.join(this.link, keys, Math.min(CALL_TIMEOUT_MS, withinMs), { clock, logger })
    }
    return new Opening({ startTimeoutMs, clock, logger, attempt })
  }

  /** Calls and an opening under way reject; a later call opens again. */
  close(): void {
    this.opened = false
    this.closings += 1
    this.opening?.end()
    this.opening = null
    this.link.close()
  }

  /** One entry of the batch script. */
  async entry<T>(operation: string, key: string, entry: Omit<Entry<T>, 'chat'>): Promise<T> {
    if (!this.opened) await this.open()
    try {
      return await this.batches.add('', { ...entry, chat: escapeName(key) })
    } catch (error) {
      throw this.failure(error, operation, key)
    }
  }

  /** A script of its own; `key` is KEYS 1. */
  script(name: PlainScript, key: string, args: readonly string[]): Promise<unknown> {
    return this.ask(name, key, args).catch((error: unknown) => {
      throw this.failure(error, name)
    })
  }

  /**
   * As `script`, but rejects with what the line or the opening says: `failure` makes of it what a store throws.
   * @param closings how often the store had been closed when this was asked for.
   */
  ask(name: PlainScript, key: string, args: readonly string[], closings = this.closings): Promise<unknown> {
    if (closings !== this.closings) {
      const details = { store: 'redis', operation: name }
      return Promise.reject(new StoreError(`The store was closed before "${name}" was sent.`, details))
    }
    if (!this.opened) return this.open().then(() => this.ask(name, key, args))
    try {
      const script = plainScript(name, this.options.place.sharded)
      return this.link.eval(script, ['1', key, ...args], CALL_TIMEOUT_MS)
    } catch (error) {
      // Whoever asks at the end of a tick has nobody to catch it.
      return Promise.reject(error)
    }
  }

  /** A plain command. @returns what the client makes of its reply. */
  async command<T>(operation: string, name: string, args: string[]): Promise<T> {
    if (!this.opened) await this.open()
    try {
      return (await this.link.call(name, args, CALL_TIMEOUT_MS)) as T
    } catch (error) {
      throw this.failure(error, operation)
    }
  }

  /** What a store's methods throw. */
  failure(error: unknown, operation: string, key?: string): Error {
    return asStoreError(error, operation, this.link.place, key)
  }

  /** Reports damaged values and moves them out of the way. */
  async moveAside(key: string, damaged: readonly Damage[]): Promise<void> {
    for (const one of damaged) {
      this.options.logger.error({ ...one }, 'a stored value could not be read and was moved aside')
    }
    await Promise.all(
      damaged.flatMap((one) => {
        const entry = asideEntry(one)
        return entry ? [this.entry('moveAside', key, entry)] : []
      }),
    )
  }
}

/** The entry that moves a damaged value of a chat aside; null for what is dealt with otherwise. */
export function asideEntry({ what, key }: Damage): Omit<Entry<string>, 'chat'> | null {
  if (what === 'record' || what === 'user') return null
  // Of an outbox entry `key` is the chat's and the entry's name.
  const name = what === 'outbox' ? escapeName(key.slice(key.indexOf(' ') + 1)) : '-'
  return { token: `F${what}`, more: [name], read: (line) => line }
}

/** @returns what a store's methods throw. @param place `host:port` of who was asked. */
export function asStoreError(error: unknown, operation: string, place: string, key?: string): Error {
  if (error instanceof ConfigError) return error
  const refusal = refusalBehind(error)
  if (refusal) return refusal
  const details = { store: 'redis', operation, ...(key === undefined ? {} : { key }) }
  if (error instanceof CoordinationUnavailableError) {
    const refused = error.cause instanceof Error ? whyNotNow(error.cause.message) : null
    return new StoreError(
      refused === null
        ? `Redis at ${place} did not answer "${operation}": check that it runs and can be reached.`
        : `Redis at ${place} refuses "${operation}" for now: ${refused}.`,
      details,
      {
        cause: error.cause ?? error,
        retryable: true,
      },
    )
  }
  if (error instanceof StoreError) return error
  return new StoreError(`Redis could not do "${operation}".`, details, { cause: error })
}
