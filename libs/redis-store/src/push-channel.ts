/**
 * The subscription to the sessions' grants (Z1), on a connection of its own. While it is down or denied, the client
 * logic polls; a half-dead connection is found by a ping that goes with each heartbeat.
 */
import type { Clock, Logger } from '@botmesh/core'
import type { Line, LineEvents } from './line.js'

export interface PushOptions {
  /** Makes the connection. */
  line: (events: LineEvents) => Line
  clock: Clock
  logger: Logger
  timeoutMs: number
  onMessage: (channel: string, text: string) => void
  onLive(live: boolean): void
}

const MOST_CHANNELS = 64

export class PushChannel {
  private readonly link: Line
  /** Oldest first. One is of use; a few more are kept for what is under way as one incarnation follows another. */
  private readonly channels = new Set<string>()
  private live = false
  private denied = false
  private pinging = false

  constructor(private readonly options: PushOptions) {
    this.link = options.line({
      onReady: () => void this.subscribe(),
      onDown: () => this.setLive(false),
      onMessage: options.onMessage,
    })
  }

  /** Begins to connect; does not wait for it, since everything works without. */
  open(): void {
    this.link.open(this.options.timeoutMs).catch((error: unknown) => {
      this.options.logger.debug({ err: error }, 'no connection for grants yet: waiting turns are polled')
    })
  }

  close(): void {
    this.link.close()
    this.setLive(false)
  }

  /** Listens to `channel`, too. Resolves when that is confirmed or cannot be had now. */
  async listen(channel: string): Promise<void> {
    this.channels.add(channel)
    for (const old of this.channels) if (this.channels.size > MOST_CHANNELS) this.leave(old)
    if (this.link.ready) await this.subscribe()
  }

  /** Nothing comes on `channel` any more. */
  leave(channel: string): void {
    if (!this.channels.delete(channel) || !this.link.ready) return
    this.link.unsubscribe(channel).catch((error: unknown) => {
      this.options.logger.debug(
        { err: error },
        'an old channel could not be left; it goes with the connection',
      )
    })
  }

  /** Asks the connection for a sign of life; one that gives none is made anew. */
  ping(): void {
    if (!this.link.ready || this.pinging || this.denied) return
    this.pinging = true
    const late = this.options.clock.setTimeout(
      () => {
        this.setLive(false)
        this.link.renew()
      },
      this.options.timeoutMs,
      { background: true },
    )
    const over = (): void => {
      late.cancel()
      this.pinging = false
    }
    this.link.ping().then(over, over)
  }

  private async subscribe(): Promise<void> {
    const channels = [...this.channels]
    if (channels.length === 0 || !this.link.ready) return
    try {
      await this.link.subscribe(channels)
      this.setLive(true)
    } catch (error) {
      const denied = error instanceof Error && error.message.startsWith('NOPERM')
      if (denied && !this.denied) {
        this.options.logger.warn(
          { err: error },
          'Redis denies this user its channel: hand-offs between replicas are polled, which is slower; grant &<prefix>:*',
        )
      }
      this.denied ||= denied
      this.setLive(false)
    }
  }

  private setLive(live: boolean): void {
    if (live === this.live) return
    this.live = live
    this.options.onLive(live)
  }
}
