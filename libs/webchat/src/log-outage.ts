/**
 * What is told while visitors' logs cannot be read: a store out of reach fails every socket alike, and one line a socket
 * and attempt would bury the log. One warning an outage, a reminder at most once a minute, one line at its end.
 *
 * States: `readable` → (a read fails) → `outage` → (a read succeeded, and nobody waits any more) → `ending` → (no read
 * failed for 5 s) → `readable`; a failure leads from `ending` back to `outage`. One socket that reads again does not end
 * it while others still fail, or a store of which only a part is away would be told of in turns. Nor does the last one
 * that waits by leaving, before any read says that the log is back: its page may be loading again. If for 5 s nobody
 * tries, the outage is forgotten without a word (`readable`): how long it went on, nobody saw.
 */
import type { Clock, Logger, Timer } from '@botmesh/core'

interface Outage {
  /** Monotonic, ms. */
  readonly since: number
  /** Sockets whose last read failed. */
  readonly waiting: Set<object>
  /** The most that waited at a time. */
  most: number
  /** The latest failure. */
  error: unknown
  /** How the latest read of anybody ended. */
  readsAgain: boolean
  /** Monotonic, ms; undefined before the warning. */
  toldAt: number | undefined
  readonly warning: Timer
  /** Set while nobody waits; `at`: since when, monotonic, ms; `seen`: because reading works again. */
  end: { readonly at: number; readonly seen: boolean; readonly timer: Timer } | undefined
}

export interface LogOutageParts {
  readonly clock: Clock
  readonly logger: Logger
  /** Id of the provider, for the log. */
  readonly provider: string
}

/** How long the warning waits, so that it can say how many sockets there are, not that there is a first one. */
const COUNT_MS = 1000
const REMIND_MS = 60_000
/** A store that fails now and then has one outage, not one a failure. */
const QUIET_MS = 5000

/** One for all sockets of a provider. Nothing here throws or waits. */
export class LogOutage {
  private outage: Outage | undefined

  constructor(private readonly parts: LogOutageParts) {}

  /** A read of this open socket failed; it will try again. */
  failed(socket: object, error: unknown): void {
    const outage = (this.outage ??= this.begin(error))
    outage.waiting.add(socket)
    outage.most = Math.max(outage.most, outage.waiting.size)
    outage.error = error
    outage.readsAgain = false
    outage.end?.timer.cancel()
    outage.end = undefined
    const { toldAt } = outage
    if (toldAt !== undefined && this.parts.clock.monotonic() - toldAt >= REMIND_MS) {
      this.warn(outage, outage.waiting.size, 'webchat: the log still cannot be read; trying again')
    }
  }

  succeeded(socket: object): void {
    if (this.outage === undefined) return
    this.outage.readsAgain = true
    this.gone(socket)
  }

  /** The socket is closed. Idempotent, also for one that never failed. */
  gone(socket: object): void {
    const { outage } = this
    if (outage === undefined) return
    outage.waiting.delete(socket)
    const seen = outage.readsAgain
    if (outage.waiting.size > 0 || outage.end?.seen === seen) return
    outage.end?.timer.cancel()
    const { clock } = this.parts
    const timer = clock.setTimeout(() => this.close(), QUIET_MS, { background: true })
    outage.end = { at: clock.monotonic(), seen, timer }
  }

  /** Forgets the outage, if there is one: what has not been said of it is said now. Idempotent. */
  close(): void {
    const { outage } = this
    if (outage === undefined) return
    this.outage = undefined
    outage.warning.cancel()
    outage.end?.timer.cancel()
    if (outage.toldAt === undefined) this.warnFirst(outage)
    if (outage.end?.seen !== true) return
    const { logger, provider } = this.parts
    const lastedMs = Math.round(outage.end.at - outage.since)
    logger.info({ provider, lastedMs, sockets: outage.most }, 'webchat: the log can be read again')
  }

  private begin(error: unknown): Outage {
    const { clock } = this.parts
    const outage: Outage = {
      since: clock.monotonic(),
      waiting: new Set(),
      most: 0,
      error,
      readsAgain: false,
      toldAt: undefined,
      warning: clock.setTimeout(() => this.warnFirst(outage), COUNT_MS, { background: true }),
      end: undefined,
    }
    return outage
  }

  private warnFirst(outage: Outage): void {
    // The most, as some may be served already.
    this.warn(outage, outage.most, 'webchat: the log cannot be read; trying again')
  }

  private warn(outage: Outage, waiting: number, text: string): void {
    const { clock, logger, provider } = this.parts
    outage.toldAt = clock.monotonic()
    const lastedMs = Math.round(outage.toldAt - outage.since)
    logger.warn({ err: outage.error, provider, waiting, lastedMs }, text)
  }
}
