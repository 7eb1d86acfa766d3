/**
 * A visitor as this replica sees them: their open sockets here, in one place so that messages of two tabs keep
 * one order, and so that one subscription to the log serves all of them. Lives while a
 * socket is open, and while a message of theirs is being accepted: a page that reconnects at once finds the same room, so
 * that what it resends is not handed over beside, or before, what it had sent.
 */
import type { Clock, Message, MessageLog, ProviderSink } from '@botmesh/core'
import { fileId, type FileStore } from './file-store.js'
import { parseFile, parseInbound } from './parse-inbound.js'
import type { LoggedMessage, MessageFrame, ServerFrame } from './protocol.js'
import { RateLimit } from './rate-limit.js'
import type { Upload, Uploads } from './uploads.js'

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
  /** Absent: visitors send no files. */
  readonly files?: { readonly uploads: Uploads; readonly store: FileStore } | undefined
}

/** One message that waits for its acceptance. */
interface Incoming {
  cid: string
  /** What must be so before the message is handed over. */
  prepare?: () => Promise<void>
  message(now: number): Message
  /** What the other tabs, and this one after a reload, are shown of it. */
  shown: Pick<LoggedMessage, 'text' | 'file' | 'replyTo'>
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
  readonly fileRate: RateLimit
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
    const { burst, perMinute } = context.files?.uploads.limits ?? context
    this.fileRate = new RateLimit(burst, perMinute)
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
    const incoming: Incoming = {
      cid: frame.cid,
      message: (now) => parseInbound(frame, { id: this.visitorId, lang }, now),
      shown: { text: frame.text, ...(frame.replyTo === undefined ? {} : { replyTo: frame.replyTo }) },
    }
    this.enqueue(incoming, from)
  }

  /**
   * Takes a whole file in: its content is in the store before the message is handed over, so that any replica can read
   * it. Ends the upload; answers `ack` or `nack`. Never rejects.
   */
  receiveFile(upload: Upload, store: FileStore, lang: string | undefined, from: RoomMember): void {
    const { frame } = upload
    const bytes = upload.content()
    const id = fileId(this.visitorId, frame.cid, bytes)
    const parse = (now: number) => parseFile(frame, id, { id: this.visitorId, lang }, now)
    const incoming: Incoming = {
      cid: frame.cid,
      prepare: () => store.write(this.context.log, id, bytes),
      message: parse,
      shown: { file: { name: parse(0).media?.fileName ?? '', sizeBytes: frame.size, mimeType: frame.type } },
    }
    this.enqueue(incoming, from, () => upload.end())
  }

  private enqueue(incoming: Incoming, from: RoomMember, ended: () => void = () => {}): void {
    if (this.waiting >= MAX_WAITING) {
      ended()
      return this.refuse(incoming.cid, from)
    }
    this.waiting += 1
    this.queue = this.queue
      .then(() => this.accept(incoming, from))
      .finally(() => {
        this.waiting -= 1
        ended()
      })
  }

  /** One after the other, so that the order of arrival is the order handed over. */
  private async accept(incoming: Incoming, from: RoomMember): Promise<void> {
    const { sink, clock, typing } = this.context
    try {
      await incoming.prepare?.()
      const message = incoming.message(clock.now())
      // Before the hand-over, or a quick answer would stand above its question in the other tabs.
      await this.echo(message.id, { v: 1, from: 'visitor', at: message.timestamp, ...incoming.shown })
      await sink.message(message)
    } catch (error) {
      sink.logger.warn(
        { err: error, chat: this.visitorId },
        'webchat: message not accepted; the page will resend',
      )
      return this.refuse(incoming.cid, from)
    }
    void from.send({ t: 'ack', cid: incoming.cid })
    if (typing) for (const member of this.members) void member.send({ t: 'typing' })
  }

  private async echo(id: string, logged: LoggedMessage): Promise<void> {
    if (this.echoed.has(id)) return
    await this.context.log.append(this.channel, JSON.stringify({ ...logged, id }))
    this.echoed.add(id)
    if (this.echoed.size > MAX_ECHOED)
      for (const oldest of this.echoed) return void this.echoed.delete(oldest)
  }

  private refuse(cid: string, from: RoomMember): void {
    void from.send({ t: 'nack', cid, reason: 'busy', retryAfterMs: BUSY_RETRY_MS })
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
