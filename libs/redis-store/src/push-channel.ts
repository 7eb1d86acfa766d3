/**
 * The subscription to one session's grants (Z1), on a connection of its own. While it is down or denied, the client
 * logic polls; a half-dead connection is found by a ping that goes with each heartbeat.
 */
import type { Clock, Logger } from '@botmesh/core'
import { RedisLink, type LinkTarget } from './redis-link.js'

export interface PushOptions {
  target: LinkTarget
  clock: Clock
  logger: Logger
  timeoutMs: number
  onMessage(channel: string, text: string): void
  onLive(live: boolean): void
}

export class PushChannel {
  private readonly link: RedisLink
  private channel: string | null = null
  private live = false
  private denied = false
  private pinging = false
  private listening: unknown = null

  constructor(private readonly options: PushOptions) {
    const { target, clock, logger } = options
    this.link = new RedisLink({
      target,
      role: 'grants',
      clock,
      logger,
      onReady: () => void this.subscribe(),
      onDown: () => this.setLive(false),
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

  /** Listens to `channel` instead of the one before. Resolves when that is confirmed or cannot be had now. */
  async listen(channel: string): Promise<void> {
    const before = this.channel
    this.channel = channel
    if (!this.link.ready) return
    if (before !== null) this.link.raw.unsubscribe(before).catch(() => undefined)
    await this.subscribe()
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
    this.link.raw.ping().then(over, over)
  }

  private async subscribe(): Promise<void> {
    const channel = this.channel
    if (channel === null || !this.link.ready) return
    const client = this.link.raw
    if (this.listening !== client) {
      this.listening = client
      client.on('message', (on: string, text: string) => this.options.onMessage(on, text))
    }
    try {
      await client.subscribe(channel)
      if (channel === this.channel) this.setLive(true)
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
