/**
 * For stores: how one reaches its server. Opened when first needed, and every call with the same rules: what the server
 * rolled back or met a conflict is made again; a lost connection is tried once more where a copy of the call changes
 * nothing; all else becomes a typed error without secrets.
 */
import type { Clock, Random } from '../contracts/clock.js'
import type { Logger } from '../contracts/logger.js'

export interface StoreLinkOptions {
  /** How long opening tries to reach the server. */
  startTimeoutMs: number
  clock: Clock
  random: Random
  logger: Logger
}

export interface CallRules {
  /** A copy of the call changes nothing and answers the same: it is made again when the connection was lost. */
  idempotent: boolean
}

/** How long a call that the server rolls back is made again. */
const ROLLED_BACK_MS = 10_000
/** How often a call is made again over a new connection, and until when: not after a deadline of its own. */
const LOST_TRIES = 3
const LOST_MS = 2000
const OPEN_PAUSE_MS = 100
/** How long `close` waits for an opening under way, whose server may say nothing. */
const CLOSE_MS = 2000

/** Ends when it is connected, refused or out of time; or when `close` ends it. */
interface Opening<Connection> {
  readonly result: Promise<Connection>
  /** No further attempt is made. */
  ending: boolean
  /** Nobody waits for the attempt under way any more. */
  abandoned: boolean
  abandon(): void
}

/** `Connection`: what a call works on once the store is open. */
export abstract class StoreLink<Connection, Options extends StoreLinkOptions = StoreLinkOptions> {
  private opened: Connection | null = null
  private opening: Opening<Connection> | null = null
  private closing: Promise<void> | null = null
  private readonly underWay = new Set<Promise<unknown>>()
  /** Closed, but for the calls under way. */
  private parting: Connection | null = null

  constructor(readonly options: Options) {}

  /** The server's name and where it is, for a log. */
  protected abstract readonly server: { title: string; place: string }
  /** Connects once, and prepares what the store needs; leaves nothing open if it fails. */
  protected abstract connect(): Promise<Connection>
  protected abstract disconnect(connection: Connection): Promise<void>
  /** `again`: nothing was stored; `lost`: the fate of the call is unknown; all else is final. */
  protected abstract judge(error: unknown): { sort: string }
  /** What a store's methods throw. */
  protected abstract failure(operation: string, key: string | undefined, error: unknown): Error

  /** Idempotent. @throws ConfigError at once for what can never work, StoreError after `startTimeoutMs`. */
  async open(): Promise<void> {
    await this.connection()
  }

  /** Waits for the calls under way, and for an opening at most 2 s. Idempotent; a later call opens again. */
  async close(): Promise<void> {
    await this.endOpening()
    const { opened } = this
    this.opened = null
    if (opened) this.closing = this.leave(opened)
    await this.closing
  }

  /**
   * Makes a call by the rules above.
   * @param key the chat's or user's, for errors; '' for none
   * @param work may ask several things of the connection, each with a deadline; makes no other call of the store, for
   *   which a `close` in between would wait for ever.
   */
  protected async repeated<T>(
    operation: string,
    key: string,
    rules: CallRules,
    work: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    const call = this.untilAnswered(operation, key, rules, work)
    this.underWay.add(call)
    try {
      return await call
    } finally {
      this.underWay.delete(call)
    }
  }

  /** Once the calls that are under way now have ended: a driver waits for a statement, not for the next one of a call. */
  private async leave(opened: Connection): Promise<void> {
    this.parting = opened
    await Promise.allSettled(this.underWay)
    if (this.parting === opened) this.parting = null
    await this.disconnect(opened)
  }

  private async untilAnswered<T>(
    operation: string,
    key: string,
    { idempotent }: CallRules,
    work: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    const { random, clock } = this.options
    const opened = this.opened ?? (await this.connection())
    const began = clock.monotonic()
    let lost = 0
    for (let tries = 1; ; tries += 1) {
      try {
        return await work(opened)
      } catch (error) {
        const { sort } = this.judge(error)
        if (sort === 'lost') lost += 1
        const tookMs = clock.monotonic() - began
        const usable = opened === this.opened || opened === this.parting
        const again =
          (sort === 'again' && tookMs < ROLLED_BACK_MS) ||
          (sort === 'lost' && idempotent && lost < LOST_TRIES && tookMs < LOST_MS)
        if (!again || !usable) throw this.failure(operation, key, error)
        // Not all at once: they met each other just now.
        await this.pause(random.next() * Math.min(50, 2 ** Math.min(tries, 10)))
      }
    }
  }

  private async endOpening(): Promise<void> {
    const { opening } = this
    if (!opening) return
    opening.ending = true
    const timer = this.options.clock.setTimeout(() => opening.abandon(), CLOSE_MS)
    // Whoever opened is told of a failure; here it only matters that it is over.
    await opening.result.catch(() => undefined)
    timer.cancel()
  }

  private async connection(): Promise<Connection> {
    if (this.opened) return this.opened
    this.opening ??= this.begin()
    return this.opening.result
  }

  private begin(): Opening<Connection> {
    let tell: (reason: Error) => void = () => undefined
    const left = new Promise<never>((_, reject) => (tell = reject))
    const state = { ending: false, abandoned: false }
    const result = Promise.race([this.openOnce(state), left]).finally(() => {
      if (this.opening === opening) this.opening = null
    })
    const opening: Opening<Connection> = Object.assign(state, {
      result,
      abandon: () => {
        state.abandoned = true
        const reason = new Error('it was closed before the server had answered')
        tell(this.failure('open', undefined, reason))
      },
    })
    return opening
  }

  private async openOnce(state: Pick<Opening<Connection>, 'ending' | 'abandoned'>): Promise<Connection> {
    await this.closing
    const { clock, startTimeoutMs, logger } = this.options
    const { title, place } = this.server
    const deadline = clock.monotonic() + startTimeoutMs
    for (let told = false; ; told = true) {
      try {
        const connection = await this.connect()
        // Too late: nobody would close it.
        if (state.abandoned) await this.disconnect(connection).catch(() => undefined)
        else this.opened = connection
        return connection
      } catch (error) {
        const { sort } = this.judge(error)
        const worthIt = (sort === 'lost' || sort === 'again') && !state.ending
        if (!worthIt || clock.monotonic() + OPEN_PAUSE_MS > deadline) {
          throw this.failure('open', undefined, error)
        }
        if (!told) logger.warn({ err: error, place }, `${title} cannot be reached yet`)
        await this.pause(OPEN_PAUSE_MS)
        if (state.ending) throw this.failure('open', undefined, error)
      }
    }
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.options.clock.setTimeout(resolve, ms))
  }
}
