/**
 * One started connection to WhatsApp Web, from start to stop, over as many sockets as it takes.
 *
 * States: `connecting` (a socket is opening or shows a QR code) → `open` → `waiting` (closed, a timer will open the
 * next socket) → `connecting` …; `over` (stopped, or closed for good): no socket is opened from it, ever. Every
 * way to a new socket goes through `connect`, which checks that, and a timer that fires late meets it there
 * (scenario 20). Events of any socket but the current one are ignored.
 */
import type { ConnectionState, WAMessage, WASocket } from '@whiskeysockets/baileys'
import {
  Backoff,
  ProviderError,
  type LeaseLostError,
  type Message,
  type ProviderSink,
  type Timer,
} from '@botmesh/core'
import { AcceptGate } from './accept-gate.js'
import { keepArrivalOrder } from './arrival-order.js'
import type { AuthState } from './auth-state.js'
import { Backlog, bytesOf } from './backlog.js'
import { closePolicy, codeOf } from './close-codes.js'
import { InboundQueue } from './inbound-queue.js'
import { keyedQueue } from './keyed-queue.js'
import type { Library } from './library.js'
import type { CheckedOptions } from './options.js'
import { parseInbound } from './parse-inbound.js'
import { printPairingCode, printQrCode } from './qr-code.js'
import { RecentMessages } from './recent-messages.js'
import type { SessionRecords } from './session-storage.js'
import { isIgnored, socketConfig } from './socket-config.js'
import { closeGrace, closeSocket, dropQuestions } from './socket-end.js'

const FIRST_PAUSE_MS = 1000
const LONGEST_PAUSE_MS = 60_000
const REMEMBERED = 1000

export class BaileysClient {
  readonly received = new RecentMessages<WAMessage>(REMEMBERED)
  readonly sent = new RecentMessages<NonNullable<WAMessage['message']>>(REMEMBERED)
  private socket: WASocket | undefined
  private over = false
  private isOpen = false
  private restarted = false
  private codeAsked = false
  private timer: Timer | undefined
  private closing: Promise<void> | undefined
  private retiring: Promise<void> | undefined
  private readonly backoff: Backoff
  private readonly inbound: InboundQueue
  private readonly signalQueue = keyedQueue()
  private backlog: Backlog
  /** Ids that went through the gate: Baileys tells of them once more. */
  private readonly passed = new RecentMessages<true>(REMEMBERED)

  constructor(
    private readonly id: string,
    private readonly options: CheckedOptions,
    private readonly library: Library,
    private readonly records: SessionRecords,
    private readonly auth: AuthState,
    private readonly sink: ProviderSink,
  ) {
    this.backlog = new Backlog(options.backlog)
    this.backoff = new Backoff(sink.random, FIRST_PAUSE_MS, LONGEST_PAUSE_MS)
    this.inbound = new InboundQueue(id, sink, () => this.checkBacklog())
    auth.watch({ lost: (error) => this.onLost(error), failed: (error) => sink.error(error) })
  }

  /** The socket, if it is logged in. */
  get ready(): WASocket | undefined {
    return this.isOpen ? this.socket : undefined
  }

  connect(): void {
    if (this.over || this.socket !== undefined) return
    this.sink.state({ status: 'connecting' })
    this.auth.forgetUnfinishedPairing()
    let socket: WASocket
    const gate = this.makeGate(() => socket)
    const config = socketConfig(this.library, this.options, gate, this.auth, this.sent)
    const backlog = (this.backlog = new Backlog(this.options.backlog))
    try {
      socket = this.library.makeWASocket(config)
    } catch (error) {
      this.sink.error(this.failure('The connection to WhatsApp could not be made.', 'not-made', false, error))
      return this.reconnect('not-made')
    }
    this.socket = socket
    keepArrivalOrder(socket.ws, {
      isIgnored: ({ attrs }) => isIgnored(this.library, this.options, attrs['from'] ?? ''),
      arrived: (stanza) => {
        gate.note(stanza)
        backlog.add(stanza, bytesOf(stanza))
        if (socket === this.socket) this.checkBacklog()
      },
      done: (stanza) => backlog.remove(stanza),
    })
    socket.ev.on('connection.update', (update) => {
      if (socket === this.socket && !this.over) this.onUpdate(socket, update)
    })
    socket.ev.on('creds.update', () => void this.auth.save())
    socket.ev.on('messages.upsert', ({ messages }) => {
      if (socket === this.socket && !this.over) messages.forEach((message) => this.onMessage(message))
    })
  }

  /** Idempotent. Resolves when no socket is open and nothing is being written. */
  async stop(): Promise<void> {
    this.over = true
    this.isOpen = false
    this.timer?.cancel()
    this.inbound.retryNoMore()
    const socket = this.socket
    this.socket = undefined
    if (socket !== undefined) this.closing = closeSocket(socket, this.sink, this.id)
    await this.closing
    this.auth.seal()
    // A runtime that does not answer must not hold up a stop: what it has not accepted comes again.
    await Promise.race([this.inbound.close(), closeGrace(this.sink.clock)])
    await this.retiring
    await this.records.close()
  }

  private onUpdate(socket: WASocket, update: Partial<ConnectionState>): void {
    if (update.qr !== undefined) this.onQr(socket, update.qr)
    if (update.connection === 'open') {
      this.isOpen = true
      this.restarted = false
      this.backoff.reset()
      this.sink.state({ status: 'open' })
    }
    if (update.connection === 'close') {
      dropQuestions(socket)
      this.onClose(update.lastDisconnect?.error)
    }
  }

  private onQr(socket: WASocket, qr: string): void {
    const { pairingPhone, printQr, session } = this.options
    if (pairingPhone !== undefined) {
      if (this.codeAsked) return
      this.codeAsked = true
      socket.requestPairingCode(pairingPhone).then(
        (value) => {
          this.sink.logger.info({ provider: this.id }, 'whatsapp: type the pairing code on the phone')
          this.sink.pairing({ kind: 'code', value })
          if (printQr) printPairingCode(session, value)
        },
        (error: unknown) =>
          this.sink.error(this.failure('No pairing code was given.', 'no-pairing-code', false, error)),
      )
      return
    }
    this.sink.logger.info(
      { provider: this.id },
      'whatsapp: scan the QR code with the phone (Settings, Linked devices)',
    )
    this.sink.pairing({ kind: 'qr', value: qr })
    if (printQr) printQrCode(session, qr).catch((error: unknown) => this.sink.error(error))
  }

  private onClose(error: unknown): void {
    this.socket = undefined
    this.isOpen = false
    this.codeAsked = false
    const code = codeOf(error)
    const policy = closePolicy(code)
    if (policy.next === 'stop') return this.end(policy.reason, policy.advice ?? '', error)
    this.sink.logger.info({ provider: this.id, code, reason: policy.reason }, 'whatsapp: connection closed')
    if (policy.next === 'restart' && !this.restarted) {
      // Part of pairing: the next connection logs in. A second one in a row waits like any other.
      this.restarted = true
      this.sink.state({ status: 'closed', reason: policy.reason })
      return this.connect()
    }
    this.reconnect(policy.reason)
  }

  private reconnect(reason: string): void {
    this.sink.state({ status: 'closed', reason })
    this.connectLater()
  }

  private connectLater(): void {
    if (this.over) return
    this.timer = this.sink.clock.setTimeout(() => this.connect(), this.backoff.next())
  }

  /** Closed for good: reported, and nothing will open a socket again. */
  private end(reason: string, advice: string, cause: unknown): void {
    this.over = true
    this.timer?.cancel()
    this.auth.seal()
    const loggedOut = reason === 'logged-out' && this.options.afterLogout === 'pair-again'
    if (loggedOut) this.retiring = this.records.retire().catch((error: unknown) => this.sink.error(error))
    this.sink.error(this.failure(`WhatsApp closed the session: ${advice}.`, reason, true, cause))
    this.sink.state({ status: 'closed', reason, final: true })
  }

  /** Another leader has opened this session: this connection must not go on with keys that it cannot keep. */
  private onLost(error: LeaseLostError): void {
    if (this.over) return
    const socket = this.socket
    this.socket = undefined
    this.isOpen = false
    if (socket !== undefined) this.closing = closeSocket(socket, this.sink, this.id)
    this.end('superseded', 'another replica has taken it', error)
  }

  /** What Baileys tells of. Nearly all has been accepted already; the rest came without the gate. */
  private onMessage(received: WAMessage): void {
    const message = this.passed.get(received.key.id ?? '') ? null : this.parse(received)
    if (message === null) return
    void this.inbound.push(message).then((accepted) => {
      if (accepted) return
      const text = `Message ${message.id} of chat ${message.chatId} is lost: it came without the gate.`
      this.sink.error(this.failure(text, 'message-lost', false, undefined))
    })
  }

  private makeGate(socket: () => WASocket): AcceptGate {
    return new AcceptGate({
      library: this.library,
      queue: this.signalQueue,
      me: () => {
        const { me } = this.auth.state.creds
        return me === undefined ? undefined : { id: me.id, lid: me.lid ?? '' }
      },
      accept: (message) => this.accept(socket(), message),
    })
  }

  /** From the gate: before WhatsApp is told that it arrived. @throws if it must be delivered again. */
  private async accept(socket: WASocket, received: WAMessage): Promise<void> {
    // Of a connection that is given up: what follows a refused message must not overtake it.
    if (this.over || socket !== this.socket) throw new Error('this connection is closed')
    const message = this.parse(received)
    if (message === null) return
    const accepted = await this.inbound.push(message)
    if (accepted && socket === this.socket) {
      this.passed.add(message.id, true)
      return
    }
    // Not acknowledged, and nothing after it either: over this connection WhatsApp would not deliver it again.
    if (socket === this.socket) {
      // Other chats' messages may be refused as well, and each is tried for long: not waited for. What comes again of
      // them waits behind that, chat by chat.
      const settled = Promise.race([this.inbound.idle(), closeGrace(this.sink.clock)])
      void this.renew(socket, 'message-not-accepted', settled)
    }
    throw new Error('the message was not accepted')
  }

  /** Too much waits: nothing more is taken from WhatsApp until the bot has taken, or finally refused, what it has. */
  private checkBacklog(): void {
    const { messages, bytes, isFull } = this.backlog
    if (this.socket === undefined || !isFull || !this.inbound.isRefused) return
    this.sink.logger.warn(
      { provider: this.id, messages, bytes },
      'whatsapp: too many messages wait behind one that the bot refuses: disconnected until it is settled; WhatsApp delivers them again',
    )
    // Whatever the bot was given over this connection: over the next one it comes again.
    void this.renew(this.socket, 'backlog-full', this.inbound.idle())
  }

  /**
   * Gives a connection up, with what it has delivered and was not told to have arrived.
   * @param settled once it resolves another is made. Never rejects.
   */
  private async renew(socket: WASocket, reason: string, settled: Promise<void>): Promise<void> {
    this.socket = undefined
    this.isOpen = false
    this.closing = closeSocket(socket, this.sink, this.id)
    await this.closing
    this.sink.state({ status: 'closed', reason })
    await settled
    this.connectLater()
  }

  private parse(received: WAMessage): Message | null {
    const message = parseInbound(received)
    if (message === null) return null
    const ageMs = this.sink.clock.now() - message.timestamp
    if (ageMs > this.options.offlineMaxAgeMs) {
      this.sink.logger.debug({ provider: this.id, id: message.id, ageMs }, 'whatsapp: old message ignored')
      return null
    }
    this.received.add(message.id, received)
    return message
  }

  private failure(message: string, reason: string, final: boolean, cause: unknown): ProviderError {
    return new ProviderError(message, { provider: this.id, reason, final }, cause)
  }
}
