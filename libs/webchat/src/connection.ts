/**
 * One socket of a page.
 *
 * States: `new` (only `hello` is welcome, until the timeout) → `joined` (messages both ways) → `closed`.
 * Delivery: a single pump reads the visitor's log from the last entry sent and waits for each frame to be written
 * (so a slow page slows its own reading only); hints, the heartbeat and the join start it, and it runs once more
 * if woken meanwhile. An entry is thus sent once per socket, in log order. A read that fails is tried again after a growing
 * pause, or when woken; what is told of it is told once for all sockets (`LogOutage`).
 */
import type { WebSocket } from 'ws'
import { Backoff, type LogEntry, type Timer } from '@botmesh/core'
import type { LogOutage } from './log-outage.js'
import { CLOSE, parseFrame, PROTOCOL_VERSION } from './protocol.js'
import type { FileFrame, HelloFrame, LoggedMessage, ServerFrame } from './protocol.js'
import { RateLimit } from './rate-limit.js'
import type { Room, RoomContext, RoomMember } from './room.js'
import { Upload } from './uploads.js'
import type { VisitorIdentity } from './visitor-identity.js'

export interface ConnectionContext extends RoomContext {
  readonly identity: VisitorIdentity
  /** Of all sockets of the provider. */
  readonly outage: LogOutage
  /** The visitor's room on this replica, made if needed. */
  enter(visitorId: string): Room
  /** The socket is closed: whatever it was in is left. */
  left(connection: Connection): void
}

const HELLO_TIMEOUT_MS = 10_000
/** Frames of any kind, so that neither pings nor refused messages cost more than a page needs. */
const FRAMES = { burst: 60, perMinute: 600 }
const READ_LIMIT = 100
/** Pauses between reads that fail: some of up to a second first, of 2.5 to 5 s in the end. */
const READ_RETRY_MS = { first: 1000, longest: 5000 }

export class Connection implements RoomMember {
  room: Room | undefined
  private state: 'new' | 'joined' | 'closed' = 'new'
  private lang: string | undefined
  private lastSeen: string | null = null
  /** `lastSeen` came from the page and has not been tried on the log yet. */
  private lastSeenUntried = false
  private pumping = false
  private again = false
  private alive = true
  private timer: Timer | undefined
  /** Of reads that fail; undefined while they do not. */
  private pause: Backoff | undefined
  /** The file on its way in. */
  private upload: Upload | undefined
  private readonly frames = new RateLimit(FRAMES.burst, FRAMES.perMinute)

  constructor(
    private readonly socket: WebSocket,
    private readonly context: ConnectionContext,
  ) {
    this.timer = context.clock.setTimeout(
      () => this.close(CLOSE.helloTimeout, 'no hello'),
      HELLO_TIMEOUT_MS,
      { background: true },
    )
    socket.on('message', (data, isBinary) => {
      // Chunks of an upload are counted by their bytes instead of as frames.
      if (isBinary && this.onChunk(data as Buffer)) return
      this.onFrame(isBinary ? null : (data as Buffer).toString('utf8'))
    })
    socket.on('pong', () => (this.alive = true))
    // An oversized or broken frame: ws closes by itself; the listener keeps it from being thrown.
    socket.on('error', (error) => context.sink.logger.debug({ err: error }, 'webchat: socket error'))
    socket.on('close', () => this.onClose())
  }

  /** Pings; a page that did not answer the former ping is gone. */
  beat(): void {
    if (!this.alive) return this.socket.terminate()
    this.alive = false
    this.socket.ping()
    this.wake()
  }

  close(code: number, reason: string): void {
    this.state = 'closed'
    this.socket.close(code, reason)
  }

  terminate(): void {
    this.socket.terminate()
  }

  send(frame: ServerFrame): Promise<void> {
    return new Promise((resolve) => {
      if (this.socket.readyState !== this.socket.OPEN) return resolve()
      // A failure is followed by 'close'; what was not seen is read again by the next socket.
      this.socket.send(JSON.stringify(frame), () => resolve())
    })
  }

  wake(): void {
    if (this.state !== 'joined') return
    if (this.pumping) {
      this.again = true
      return
    }
    this.pumping = true
    void this.pump().finally(() => (this.pumping = false))
  }

  private onFrame(text: string | null): void {
    if (this.state === 'closed') return
    if (this.frames.take(this.context.clock.monotonic()) > 0) {
      return this.fail('rate', CLOSE.tooManyFrames)
    }
    const frame = text === null ? null : parseFrame(text)
    if (frame === null || (frame.t === 'hello') !== (this.state === 'new')) {
      return this.fail('malformed', CLOSE.malformed)
    }
    if (frame.t === 'hello') return this.onHello(frame)
    if (frame.t === 'ping') return void this.send({ t: 'pong' })
    if (frame.t === 'file') return this.onFile(frame)
    if (frame.t === 'file-stop') return this.dropUpload(frame.cid)
    this.room?.receive(frame, this.lang, this)
  }

  private onFile(frame: FileFrame): void {
    const { files } = this.context
    if (this.upload !== undefined) return this.fail('malformed', CLOSE.malformed)
    if (files === undefined || this.room === undefined) {
      return void this.send({ t: 'nack', cid: frame.cid, reason: 'files-off' })
    }
    // Closed, so that chunks still under way cannot be taken for something else.
    const onTimeout = () => this.close(CLOSE.helloTimeout, 'upload too slow')
    const begun = files.uploads.begin(frame, this.room.fileRate, onTimeout)
    if (!(begun instanceof Upload)) return void this.send({ t: 'nack', cid: frame.cid, ...begun })
    this.upload = begun
    void this.send({ t: 'go', cid: frame.cid, chunkBytes: files.uploads.chunkBytes })
  }

  /** @returns false if it is no chunk that is awaited. */
  private onChunk(chunk: Buffer): boolean {
    const { upload, room } = this
    const { files } = this.context
    if (this.state !== 'joined' || upload === undefined || room === undefined || files === undefined)
      return false
    if (!upload.take(chunk)) return false
    void this.send({ t: 'got', cid: upload.frame.cid, bytes: upload.received })
    if (upload.isWhole) {
      this.upload = undefined
      room.receiveFile(upload, files.store, this.lang, this)
    }
    return true
  }

  private dropUpload(cid?: string): void {
    if (this.upload === undefined || (cid !== undefined && this.upload.frame.cid !== cid)) return
    this.upload.end()
    this.upload = undefined
  }

  private onHello(hello: HelloFrame): void {
    if (hello.v !== PROTOCOL_VERSION) return this.fail('outdated', CLOSE.outdated)
    const { identity } = this.context
    if (hello.visitor !== undefined && !identity.verify(hello.visitor)) {
      return this.fail('signature', CLOSE.badSignature)
    }
    this.timer?.cancel()
    this.state = 'joined'
    this.lang = hello.lang
    this.lastSeen = hello.visitor === undefined ? null : hello.after
    this.lastSeenUntried = this.lastSeen !== null
    const visitor = hello.visitor === undefined ? identity.issue() : identity.sign(hello.visitor.id)
    const known = hello.visitor !== undefined
    const limits = this.context.files?.uploads.limits
    const files = limits && { maxBytes: limits.maxBytes, types: limits.types }
    void this.send({ t: 'welcome', v: PROTOCOL_VERSION, visitor, known, ...(files && { files }) })
    this.room = this.context.enter(visitor.id)
    // Read after subscribing, so that nothing appended in between is missed; join never rejects.
    void this.room.join(this).then(() => this.wake())
  }

  private fail(code: 'malformed' | 'signature' | 'outdated' | 'rate', closeCode: number): void {
    void this.send({ t: 'error', code })
    this.close(closeCode, code)
  }

  private onClose(): void {
    this.state = 'closed'
    this.timer?.cancel()
    this.dropUpload()
    this.context.outage.gone(this)
    this.context.left(this)
  }

  private async pump(): Promise<void> {
    const { log, outage } = this.context
    const room = this.room
    if (room === undefined) return
    do {
      this.again = false
      let entries: LogEntry[]
      try {
        entries = await log.read(room.channel, this.lastSeen, READ_LIMIT)
        this.lastSeenUntried = false
        this.pause = undefined
        outage.succeeded(this)
      } catch (error) {
        // Closed meanwhile: it waits for nothing.
        if (this.isOpen) this.readLater(error)
        return
      }
      for (const entry of entries) {
        if (!this.isOpen) return
        await this.deliver(entry)
        this.lastSeen = entry.id
      }
      if (entries.length >= READ_LIMIT) this.again = true
    } while (this.again && this.isOpen)
  }

  private readLater(error: unknown): void {
    const { outage, sink, clock } = this.context
    outage.failed(this, error)
    // A page may bring an id of another kind of log (the store was changed): then from the oldest kept.
    if (this.lastSeenUntried) this.lastSeen = null
    this.lastSeenUntried = false
    this.pause ??= new Backoff(sink.random, READ_RETRY_MS.first, READ_RETRY_MS.longest)
    this.timer?.cancel()
    this.timer = clock.setTimeout(() => this.wake(), this.pause.next(), { background: true })
  }

  private async deliver(entry: LogEntry): Promise<void> {
    let logged: LoggedMessage
    try {
      logged = JSON.parse(entry.payload) as LoggedMessage
    } catch (error) {
      this.context.sink.logger.warn({ err: error, entry: entry.id }, 'webchat: unreadable log entry skipped')
      return
    }
    const { v: _version, id, ...rest } = logged
    await this.send({ t: 'msg', seq: entry.id, id: id ?? entry.id, ...rest })
  }

  /** A getter, because other code may close the socket while the pump awaits. */
  private get isOpen(): boolean {
    return this.state === 'joined'
  }
}
