/**
 * The WebSocket side of the Discord double: hello, heartbeats and their acknowledgement, identify, ready, resume with
 * the missed events, reconnect (op 7), invalid session (op 9), dispatches, close codes. Counts connections.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer, type WebSocket } from 'ws'
import { GatewaySession } from './sessions.js'

const PRIVILEGED = (1 << 1) | (1 << 8) | (1 << 15)

export interface GatewayOptions {
  token: string
  botId: string
  applicationId: string
  /** Default 41250, as Discord. */
  heartbeatMs: number
  /** Where clients resume. */
  url: () => string
  wake: () => void
}

export class GatewayDouble {
  /** Connections open now. */
  open = 0
  /** The most that were open at one moment. */
  mostOpen = 0
  /** Connections that were ever made. */
  accepted = 0
  identified = 0
  resumed = 0
  heartbeats = 0
  /** Codes that clients closed with, in order. */
  readonly closedWith: number[] = []
  readonly sessions = new Map<string, GatewaySession>()
  /** Privileged intents that the application may ask for. */
  allowedIntents = PRIVILEGED
  /** False: heartbeats are not acknowledged any more, as on a dead connection. */
  acknowledges = true
  /** Closes each connection instead of letting it identify or resume. */
  refuseWith: number | undefined
  /** False: a new connection gets no hello. */
  greets = true
  private readonly sockets = new Set<WebSocket>()
  private readonly closedHere = new WeakSet<WebSocket>()
  private readonly server = new WebSocketServer({ noServer: true })
  private serial = 0

  constructor(private readonly options: GatewayOptions) {}

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.server.handleUpgrade(request, socket, head, (connection) => this.greet(connection))
  }

  /** An event for every session; those without a connection get it when they resume. */
  dispatch(type: string, data: unknown): void {
    for (const session of this.sessions.values()) session.dispatch(type, data)
  }

  /** Closes all connections with a code; sessions stay, as Discord's do. */
  close(code: number): void {
    for (const socket of this.sockets) {
      this.closedHere.add(socket)
      socket.close(code)
    }
  }

  /** Ends all connections without a word. */
  drop(): void {
    for (const socket of this.sockets) socket.terminate()
  }

  /** Op 7. */
  askToReconnect(): void {
    for (const socket of this.sockets) send(socket, { op: 7, d: null })
  }

  /** Op 9, and with it the sessions unless they may be resumed. */
  invalidate(resumable: boolean): void {
    if (!resumable) this.sessions.clear()
    for (const socket of this.sockets) send(socket, { op: 9, d: resumable })
  }

  /** Sends text as it is. */
  sendRaw(text: string): void {
    for (const socket of this.sockets) socket.send(text)
  }

  stop(): void {
    this.drop()
    this.server.close()
  }

  private greet(socket: WebSocket): void {
    this.sockets.add(socket)
    this.accepted += 1
    this.open += 1
    this.mostOpen = Math.max(this.mostOpen, this.open)
    socket.on('message', (data: Buffer) => this.hear(socket, JSON.parse(data.toString()) as Command))
    socket.on('error', () => {})
    socket.on('close', (code) => this.lose(socket, code))
    if (this.greets) send(socket, { op: 10, d: { heartbeat_interval: this.options.heartbeatMs } })
    this.options.wake()
  }

  private lose(socket: WebSocket, code: number): void {
    this.sockets.delete(socket)
    this.open -= 1
    this.closedWith.push(code)
    for (const session of this.sessions.values()) {
      if (session.socket !== socket) continue
      session.socket = undefined
      // A client that says goodbye ends its session.
      if ((code === 1000 || code === 1001) && !this.closedHere.has(socket)) this.sessions.delete(session.id)
    }
    this.options.wake()
  }

  private hear(socket: WebSocket, { op, d }: Command): void {
    if (op === 1) this.beat(socket)
    else if (op === 2) this.identify(socket, d ?? {})
    else if (op === 6) this.resume(socket, d ?? {})
    this.options.wake()
  }

  private beat(socket: WebSocket): void {
    this.heartbeats += 1
    if (this.acknowledges) send(socket, { op: 11, d: null })
  }

  private identify(socket: WebSocket, { token, intents = 0 }: Identity): void {
    this.identified += 1
    if (this.refuseWith !== undefined) return socket.close(this.refuseWith)
    if (token !== this.options.token) return socket.close(4004, 'Authentication failed.')
    if ((intents & PRIVILEGED & ~this.allowedIntents) !== 0)
      return socket.close(4014, 'Disallowed intent(s).')
    this.serial += 1
    const session = new GatewaySession(`session-${this.serial}`, intents)
    this.sessions.set(session.id, session)
    session.socket = socket
    session.dispatch('READY', {
      v: 10,
      user: { id: this.options.botId, username: 'tienda', bot: true, discriminator: '0' },
      guilds: [],
      session_id: session.id,
      resume_gateway_url: this.options.url(),
      application: { id: this.options.applicationId, flags: 0 },
    })
  }

  private resume(socket: WebSocket, { token, session_id: id = '', seq = 0 }: Identity): void {
    if (this.refuseWith !== undefined) return socket.close(this.refuseWith)
    if (token !== this.options.token) return socket.close(4004, 'Authentication failed.')
    const session = this.sessions.get(id)
    if (session === undefined) return send(socket, { op: 9, d: false })
    if (seq > session.last) return socket.close(4007, 'Invalid seq.')
    this.resumed += 1
    // Whoever was connected to it before is not any more.
    if (session.socket !== socket) session.socket?.close(4005)
    session.replay(socket, seq)
    session.dispatch('RESUMED', { _trace: [] })
  }
}

interface Identity {
  token?: string
  intents?: number
  session_id?: string
  seq?: number
}

interface Command {
  op: number
  d: Identity | null
}

function send(socket: WebSocket, payload: object): void {
  socket.send(JSON.stringify(payload))
}
