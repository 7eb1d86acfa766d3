/** `bot.ready`: a promise that follows the transport. */
import { CoordinationUnavailableError } from '../contracts/errors.js'
import type { ProviderSession } from '../runtime/provider-session.js'

export class Readiness {
  private settled: 'pending' | 'ready' | 'ended' = 'pending'
  private current!: Promise<void>
  private resolve!: () => void
  private reject!: (error: Error) => void
  private onReady: () => void = () => undefined

  constructor() {
    this.renew()
  }

  get promise(): Promise<void> {
    return this.current
  }

  /** @param onReady called each time that it becomes ready. */
  begin(onReady: () => void): void {
    this.onReady = onReady
    if (this.settled !== 'pending') this.renew()
  }

  /** Connected: resolved. Standing by after having been ready: pending anew. */
  follow(session: ProviderSession | undefined): void {
    if (session === undefined || this.settled === 'ended') return
    if (session.open && this.settled === 'pending') {
      this.settled = 'ready'
      this.resolve()
      this.onReady()
    } else if (session.role === 'follower' && this.settled === 'ready') this.renew()
  }

  end(): void {
    if (this.settled === 'ended') return
    if (this.settled === 'ready') this.renew()
    this.settled = 'ended'
    this.reject(new CoordinationUnavailableError('stopped'))
  }

  private renew(): void {
    this.settled = 'pending'
    this.current = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
    // Whoever waits is told; that nobody does is no error.
    this.current.catch(() => undefined)
  }
}
