/**
 * A visitor as this replica sees them: their open sockets here, in one place so that messages of two tabs keep
 * one order, and so that one subscription to the log serves all of them. Lives while a
 * socket is open, and while a message of theirs is being accepted: a page that reconnects at once finds the same room, so
 * that what it resends is not handed over beside, or before, what it had sent.
 */
import type { Clock, MessageLog, ProviderSink } from '@botmesh/core'
import { inboundId, parseInbound } from './parse-inbound.js'
import type { LoggedMessage, MessageFrame, ServerFrame } from './protocol.js'
import { RateLimit } from './rate-limit.js'

/** What a room needs of a socket. */
export interface RoomMember {
  send(frame: ServerFrame): Promise<void>
  /** Something new may be in the log. */
  wake(): void
}

export interface RoomContext {
  readonly sink: ProviderSink
  readonly log: MessageLog
  readonly clock: Clock
  channel(visitorId: string): string
  readonly burst: number
  readonly perMinute: number
  readonly maxTextLength: number
  readonly typing: boolean
}

/** Messages of one visitor that may wait here for their acceptance; the page tries further ones again. */
const MAX_WAITING = 32
/** A page that is told "busy" tries again after this long. */
const BUSY_RETRY_MS = 2000
/** Ids whose echo is in the log already: a resend after a lost ack needs no second one. */
const MAX_ECHOED = 64

export class Room {
  readonly members = new Set<RoomMember>()
  readonly channel: string
  private readonly rate: RateLimit
  private readonly echoed = new Set<string>()
  private waiting = 0
  private queue: Promise<void> = Promise.resolve()
  private unsubscribe: (() => Promise<void>) | undefined
  private subscribing: Promise<void> | undefined

  constructor(
    readonly visitorId: string,
    private readonly context: RoomContext,
  ) {
    this.channel = context.channel(visitorId)
    this.rate = new RateLimit(context.burst, context.perMinute)
  }

  /** Adds a socket; the first one subscribes. Resolves once appends are noticed (or only polled, if refused). */
  async join(member: RoomMember): Promise<void> {
    this.members.add(member)
    this.subscribing ??= this.subscribe()
    await this.subscribing
  }

  /** @returns true if that was the last one: the room may be closed once it is idle. */
  leave(member: RoomMember): boolean {
    this.members.delete(member)
    return this.members.size === 0
  }

  /** Resolves when no message is being accepted; with nobody in it none will come. */
  async idle(): Promise<void> {
    await this.queue
  }

  async close(): Promise<void> {
    await this.subscribing
    const unsubscribe = this.unsubscribe
    this.unsubscribe = undefined
    try {
      await unsubscribe?.()
    } catch (error) {
      this.context.sink.logger.debug({ err: error }, 'webchat: unsubscribing from the log failed')
    }
    await this.queue
  }

  wake(): void {
    for (const member of this.members) member.wake()
  }

  /** Takes one message in; answers `ack` or `nack` on `from`. Never rejects. */
  receive(frame: MessageFrame, lang: string | undefined, from: RoomMember): void {
    const waitMs = this.rate.take(this.context.clock.monotonic())
    if (waitMs > 0) return void from.send({ t: 'nack', cid: frame.cid, reason: 'rate', retryAfterMs: waitMs })
    if (frame.text.length > this.context.maxTextLength) {
      return void from.send({ t: 'nack', cid: frame.cid, reason: 'too-long' })
    }
    if (this.waiting >= MAX_WAITING) return this.refuse(frame, from)
    this.waiting += 1
    this.queue = this.queue.then(() => this.accept(frame, lang, from)).finally(() => (this.waiting -= 1))
  }

  /** One after the other, so that the order of arrival is the order handed over. */
  private async accept(frame: MessageFrame, lang: string | undefined, from: RoomMember): Promise<void> {
    const { sink, clock, typing } = this.context
    const message = parseInbound(frame, { id: this.visitorId, lang }, clock.now())
    try {
      // Before the hand-over, or a quick answer would stand above its question in the other tabs.
      await this.echo(frame, message.timestamp)
      await sink.message(message)
    } catch (error) {
      sink.logger.warn(
        { err: error, chat: this.visitorId },
        'webchat: message not accepted; the page will resend',
      )
      return this.refuse(frame, from)
    }
    void from.send({ t: 'ack', cid: frame.cid })
    if (typing) for (const member of this.members) void member.send({ t: 'typing' })
  }

  private async echo(frame: MessageFrame, at: number): Promise<void> {
    const id = inboundId(this.visitorId, frame.cid)
    if (this.echoed.has(id)) return
    const logged: LoggedMessage = { v: 1, from: 'visitor', id, at, text: frame.text }
    if (frame.replyTo !== undefined) logged.replyTo = frame.replyTo
    await this.context.log.append(this.channel, JSON.stringify(logged))
    this.echoed.add(id)
    if (this.echoed.size > MAX_ECHOED)
      for (const oldest of this.echoed) return void this.echoed.delete(oldest)
  }

  private refuse(frame: MessageFrame, from: RoomMember): void {
    void from.send({ t: 'nack', cid: frame.cid, reason: 'busy', retryAfterMs: BUSY_RETRY_MS })
  }

  private async subscribe(): Promise<void> {
    try {
      this.unsubscribe = await this.context.log.subscribe(this.channel, () => this.wake())
    } catch (error) {
      // The heartbeat polls anyway: slower, not lost.
      this.context.sink.logger.warn({ err: error }, 'webchat: no hints from the log, polling only')
    }
  }
}
