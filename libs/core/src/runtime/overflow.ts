/**
 * Too many messages wait (scenario 35): they are refused, so that the platform delivers them again, and that is told
 * without flooding whoever listens: the first one at once, then once a second how many there were.
 */
import type { Clock, Timer } from '../contracts/clock.js'
import { CoordinationUnavailableError } from '../contracts/errors.js'

export type OverflowLimit = 'maxWaitingPerChat' | 'maxWaiting'

const REPORT_EVERY_MS = 1000

export class Overflow {
  private timer: Timer | null = null
  private refused = 0
  /** Of those that were not reported yet; null: of several chats. */
  private key: string | null | undefined
  private limit: OverflowLimit | undefined

  constructor(
    private readonly clock: Clock,
    private readonly report: (error: unknown) => void,
  ) {}

  /** @param limit absent: the coordinator's own. @returns what the message is refused with. */
  refuse(key: string, limit?: OverflowLimit): CoordinationUnavailableError {
    const error = new CoordinationUnavailableError('overflow', { key, limit })
    this.note(key, limit, error)
    return error
  }

  /** A message that was refused with `error` elsewhere. */
  note(key: string, limit: OverflowLimit | undefined, error: CoordinationUnavailableError): void {
    if (this.timer === null) {
      this.report(error)
      this.wait()
      return
    }
    this.refused++
    this.limit = limit
    this.key = this.key === undefined || this.key === key ? key : null
  }

  /** Tells at once what was not told yet. */
  close(): void {
    this.timer?.cancel()
    this.timer = null
    this.tell()
  }

  private wait(): void {
    this.timer = this.clock.setTimeout(
      () => {
        this.timer = null
        // While it goes on it is told again; after a second without any the next one is told at once.
        if (this.tell()) this.wait()
      },
      REPORT_EVERY_MS,
      { background: true },
    )
  }

  private tell(): boolean {
    const { refused, limit, key } = this
    if (refused === 0) return false
    this.refused = 0
    this.key = undefined
    const of = typeof key === 'string' ? { key } : {}
    this.report(new CoordinationUnavailableError('overflow', { ...of, limit, refused }))
    return true
  }
}

export function isOverflow(error: Error): error is CoordinationUnavailableError {
  return error instanceof CoordinationUnavailableError && error.details.why === 'overflow'
}
