/** How the store reaches Redis: one connection, opened when first needed, calls of one tick in one script call. */
import { ConfigError, CoordinationUnavailableError, StoreError, type Clock, type Logger } from '@botmesh/core'
import { BatchQueue, type Entry } from './batch-queue.js'
import { escapeName, type ShardKeys } from './keys.js'
import { joinMesh, refusalBehind } from './mesh.js'
import { RedisLink, type LinkTarget } from './redis-link.js'
import { composeBatch, plainScript, type PlainScript, type ScriptPatch } from './scripts.js'
import type { Damage } from './stored-values.js'

export interface StoreCallsOptions {
  target: LinkTarget
  keys: ShardKeys
  windowMs: number
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
  readonly link: RedisLink
  private readonly batches: BatchQueue
  private opening: Promise<void> | null = null
  private opened = false

  constructor(readonly options: StoreCallsOptions) {
    const { target, keys, clock, logger, windowMs, patch, waitingPerChat, idsPerChat } = options
    this.link = new RedisLink({ target, role: 'store', clock, logger })
    this.batches = new BatchQueue({
      link: this.link,
      script: composeBatch({ waitingPerChat, idsPerChat }, patch),
      holders: keys.holders,
      base: keys.base,
      windowMs,
      leaseMs: () => 1,
      timeoutMs: () => CALL_TIMEOUT_MS,
      onNews: () => undefined,
    })
  }

  /** Idempotent. @throws ConfigError at once for what can never work, StoreError after `startTimeoutMs`. */
  async open(): Promise<void> {
    if (this.opened) return
    this.opening ??= this.openOnce().finally(() => {
      this.opening = null
    })
    await this.opening
  }

  private async openOnce(): Promise<void> {
    const { startTimeoutMs, keys, windowMs, logger } = this.options
    try {
      await this.link.open(startTimeoutMs)
      await joinMesh(this.link, { keys, windowMs }, CALL_TIMEOUT_MS, logger)
      this.opened = true
    } catch (error) {
      this.link.close()
      throw asStoreError(error, 'open')
    }
  }

  close(): void {
    this.opened = false
    this.link.close()
  }

  /** One entry of the batch script. */
  async entry<T>(operation: string, key: string, entry: Omit<Entry<T>, 'chat'>): Promise<T> {
    if (!this.opened) await this.open()
    try {
      return await this.batches.add('', { ...entry, chat: escapeName(key) })
    } catch (error) {
      throw asStoreError(error, operation, key)
    }
  }

  /** A script of its own; `key` is KEYS 1. */
  async script(name: PlainScript, key: string, args: string[]): Promise<unknown> {
    if (!this.opened) await this.open()
    try {
      return await this.link.eval(plainScript(name), ['1', key, ...args], CALL_TIMEOUT_MS)
    } catch (error) {
      throw asStoreError(error, name)
    }
  }

  /** A plain command. */
  async command<T>(operation: string, run: (client: RedisLink['raw']) => Promise<T>): Promise<T> {
    if (!this.opened) await this.open()
    try {
      return await run(this.link.raw)
    } catch (error) {
      throw asStoreError(error, operation)
    }
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
  return { token: `F${what}`, more: [what === 'outbox' ? escapeName(key) : '-'], read: (line) => line }
}

/** @returns what a store's methods throw. */
export function asStoreError(error: unknown, operation: string, key?: string): Error {
  if (error instanceof ConfigError) return error
  const refusal = refusalBehind(error)
  if (refusal) return refusal
  const details = { store: 'redis', operation, ...(key === undefined ? {} : { key }) }
  if (error instanceof CoordinationUnavailableError) {
    return new StoreError(
      `Redis did not answer "${operation}": check that it runs and can be reached.`,
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
