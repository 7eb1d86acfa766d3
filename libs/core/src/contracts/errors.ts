/**
 * The errors that Botmesh throws. Each has a stable `code`, says whether trying again can help (`retryable`),
 * carries typed `details`, keeps its `cause`, and words its own message, so that callers match on classes or
 * codes and never on text.
 */
import { BotmeshError } from './botmesh-error.js'

export { BotmeshError }

/** Why a turn or a leadership no longer belongs to its former holder. */
export type LeaseLostReason =
  /** The session lapsed in the backend. */
  | 'expired'
  /** This replica could not prove for nearly `leaseMs` that it was alive, and let go by itself (L2). */
  | 'frozen'
  /** A later holder has written: the store refused this writer (K2). */
  | 'superseded'
  /** The conversation's step ran longer than `settleMs` and was stopped (T4). */
  | 'settled'
  /** Taken away: the backend says that somebody else holds it. */
  | 'revoked'
  /** The bot or the coordinator was stopped. */
  | 'stopped'

/** A turn or a leadership was lost; nothing done in its name has an effect any more (L2, T4, K4). */
export class LeaseLostError extends BotmeshError<{ key: string; reason: LeaseLostReason; fence?: number }> {
  static override readonly brand: string = 'LeaseLostError'
  readonly code = 'LEASE_LOST'
  readonly reason: LeaseLostReason
  readonly key: string

  constructor(key: string, reason: LeaseLostReason, options: { fence?: number; cause?: unknown } = {}) {
    super(
      `The lease of "${key}" was lost (${reason}): another replica may be serving it now, so this action has no effect.`,
      { key, reason, ...(options.fence === undefined ? {} : { fence: options.fence }) },
      { cause: options.cause },
    )
    this.reason = reason
    this.key = key
  }
}

/** `bot.send()` on a replica whose exclusive transport stands by (P4). */
export class ProviderNotLeaderError extends BotmeshError<{ provider: string }> {
  static override readonly brand: string = 'ProviderNotLeaderError'
  readonly code = 'PROVIDER_NOT_LEADER'

  constructor(provider: string) {
    super(
      `Provider "${provider}" is connected on another replica: this one stands by and cannot send.`,
      { provider },
      { retryable: true },
    )
  }
}

/** A message could not get its turn: the wait was too long, the backend did not answer (T6), or nothing runs here. */
export class CoordinationUnavailableError extends BotmeshError<{
  key?: string
  why: 'timeout' | 'unreachable' | 'stopped' | 'overflow'
  waitedMs?: number
  where?: string
  /** Of an overflow: the option that was exceeded; absent: the coordinator's own limit. */
  limit?: string
  /** Of an overflow: how many were refused since the last report; absent: this one. */
  refused?: number
}> {
  static override readonly brand: string = 'CoordinationUnavailableError'
  readonly code = 'COORDINATION_UNAVAILABLE'

  constructor(
    why: 'timeout' | 'unreachable' | 'stopped' | 'overflow',
    /**
     * `where`: which backend, such as `Redis at host:port`; never with a secret. `text`: of `stopped`, in words that say
     * more than the usual ones.
     */
    options: {
      key?: string
      text?: string
      waitedMs?: number
      where?: string | undefined
      limit?: string | undefined
      refused?: number
      cause?: unknown
    } = {},
  ) {
    const of = options.key === undefined ? '' : ` for "${options.key}"`
    const text = {
      timeout: `No turn${of} within ${options.waitedMs ?? '?'} ms: the chat is busy on a replica; raise turnWaitMs if its work is that long.`,
      unreachable: `${options.where === undefined ? 'The coordination backend' : `The coordination backend (${options.where})`} did not answer${of}: check that it runs and can be reached.`,
      stopped:
        options.text ?? `Not possible${of}: the bot or its coordinator is stopped, or was not started yet.`,
      overflow: overflowText(of, options),
    }[why]
    super(
      text,
      {
        why,
        ...(options.key === undefined ? {} : { key: options.key }),
        ...(options.waitedMs === undefined ? {} : { waitedMs: options.waitedMs }),
        ...(options.where === undefined ? {} : { where: options.where }),
        ...(options.limit === undefined ? {} : { limit: options.limit }),
        ...(options.refused === undefined ? {} : { refused: options.refused }),
      },
      { cause: options.cause, retryable: true },
    )
  }
}

function overflowText(
  of: string,
  { limit, refused }: { limit?: string | undefined; refused?: number },
): string {
  const whose = limit === 'maxWaiting' ? 'of this replica' : 'of this chat'
  const option = limit === undefined ? '' : ` (${limit})`
  const others = refused === undefined ? '' : `; ${refused} more were refused since that was last said`
  return `No turn${of}: too many messages ${whose} are waiting${option}${others}. They were not accepted: the platform may deliver them again.`
}

/** A question was not answered in time; not caught, it ends its conversation quietly. */
export class WaitTimeoutError extends BotmeshError<{ key: string; timeoutMs: number }> {
  static override readonly brand: string = 'WaitTimeoutError'
  readonly code = 'WAIT_TIMEOUT'

  constructor(key: string, timeoutMs: number) {
    super(`No answer in "${key}" within ${timeoutMs} ms.`, { key, timeoutMs })
  }
}

/** A question got `maxAttempts` answers and none was accepted; not caught, it ends its conversation quietly. */
export class TooManyAttemptsError extends BotmeshError<{ key: string; attempts: number }> {
  static override readonly brand: string = 'TooManyAttemptsError'
  readonly code = 'TOO_MANY_ATTEMPTS'

  constructor(key: string, attempts: number) {
    super(`No acceptable answer in "${key}" after ${attempts} attempts.`, { key, attempts })
  }
}

/** An option, a flow or a combination that cannot work; raised at construction or start, never later. */
export class ConfigError extends BotmeshError<{
  option: string
  value?: unknown
  accepted?: string
  /** Whose option it is, such as `RedisStore`, where that is known. */
  owner?: string
}> {
  static override readonly brand: string = 'ConfigError'
  readonly code = 'CONFIG'
  readonly #wording: ((option: string) => string) | undefined

  /** @param message or how to word it, given what the option is to be called: it says whose it is once that is known. */
  constructor(
    message: string | ((option: string) => string),
    details: { option: string; value?: unknown; accepted?: string; owner?: string },
    cause?: unknown,
  ) {
    super(typeof message === 'string' ? message : message(called(details)), { ...details }, { cause })
    this.#wording = typeof message === 'string' ? undefined : message
  }

  /** The same error, which from now on says whose option it is. One that says so already keeps its owner. */
  ownedBy(owner: string): this {
    if (this.details.owner !== undefined) return this
    const before = this.message
    this.details.owner = owner
    this.message = this.#wording?.(called(this.details)) ?? before
    // Its first line quotes the message, and was written when the error was made.
    if (this.stack !== undefined) this.stack = this.stack.replace(before, () => this.message)
    return this
  }
}

function called({ option, owner }: { option: string; owner?: string }): string {
  return owner === undefined ? `Option "${option}"` : `${owner} option "${option}"`
}

/** How a send that did not succeed is to be treated. */
export type SendOutcome =
  /** Not delivered; the same send may succeed later. */
  | 'retryable'
  /** Not delivered, and never will be. */
  | 'final'
  /** Nobody knows: the request was written, the answer is missing. */
  | 'uncertain'

/** A platform did not take a message. The class says whether it may be sent again, and when. */
export class SendError extends BotmeshError<{
  provider: string
  outcome: SendOutcome
  platformCode?: string
  retryAfterMs?: number
  /** Whom a `retryAfterMs` concerns. */
  scope?: 'chat' | 'account'
}> {
  static override readonly brand: string = 'SendError'
  readonly code = 'SEND_FAILED'
  readonly outcome: SendOutcome

  constructor(
    message: string,
    details: {
      provider: string
      outcome: SendOutcome
      platformCode?: string
      retryAfterMs?: number
      scope?: 'chat' | 'account'
    },
    cause?: unknown,
  ) {
    super(message, details, { cause, retryable: details.outcome === 'retryable' })
    this.outcome = details.outcome
  }
}

/** A message was given up after its last attempt and stands among the dead letters now (D3). */
export class DeadLetterError extends BotmeshError<{ key: string; recordId: string; attempts: number }> {
  static override readonly brand: string = 'DeadLetterError'
  readonly code = 'DEAD_LETTER'

  constructor(key: string, recordId: string, attempts: number, cause: unknown) {
    super(
      `Message "${recordId}" of "${key}" failed ${attempts} times and was moved to the dead letters; see bot.deadLetters.`,
      { key, recordId, attempts },
      { cause },
    )
  }
}

/** An attempt of a durable task failed (J1): it is tried again after `retryInMs`, or given up. */
export class TaskFailedError extends BotmeshError<{
  task: string
  occurrence: Date
  attempt: number
  /** Null: it was the last attempt, the next occurrence comes all the same. */
  retryInMs: number | null
}> {
  static override readonly brand: string = 'TaskFailedError'
  readonly code = 'TASK_FAILED'

  constructor(task: string, occurrence: Date, attempt: number, retryInMs: number | null, cause: unknown) {
    const then = retryInMs === null ? 'given up' : `tried again in ${retryInMs} ms`
    super(
      `Task "${task}", due at ${occurrence.toISOString()}, failed at attempt ${attempt}: ${then}.`,
      { task, occurrence, attempt, retryInMs },
      { cause, retryable: retryInMs !== null },
    )
  }
}

/** A transport could not connect or was refused by its platform. */
export class ProviderError extends BotmeshError<{ provider: string; reason: string; final: boolean }> {
  static override readonly brand: string = 'ProviderError'
  readonly code = 'PROVIDER'

  constructor(
    message: string,
    details: { provider: string; reason: string; final: boolean },
    cause?: unknown,
  ) {
    super(message, details, { cause, retryable: !details.final })
  }
}

/** A store or its server misbehaved in a way that no other class describes. */
export class StoreError extends BotmeshError<{ store: string; operation: string; key?: string }> {
  static override readonly brand: string = 'StoreError'
  readonly code = 'STORE'

  constructor(
    message: string,
    details: { store: string; operation: string; key?: string },
    options: { cause?: unknown; retryable?: boolean } = {},
  ) {
    super(message, details, options)
  }
}
