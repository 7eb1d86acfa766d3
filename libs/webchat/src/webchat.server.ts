/**
 * The I/O side: sockets of one provider, from the HTTP upgrade to the heartbeat. An HTTP server may carry several
 * web chats and other upgrade handlers: one listener per server asks each attached chat whether the path is its
 * own, and leaves the rest alone (only if nobody else listens either, the request is refused rather than left
 * hanging).
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer, type WebSocket } from 'ws'
import type { MessageLog, ProviderSink, Timer, UpgradeServer } from '@botmesh/core'
import { Connection, type ConnectionContext } from './connection.js'
import { LogOutage } from './log-outage.js'
import type { CheckedOptions } from './options.js'
import { CLOSE } from './protocol.js'
import type { FileStore } from './file-store.js'
import { Room } from './room.js'
import { Uploads } from './uploads.js'
import type { VisitorIdentity } from './visitor-identity.js'

/** One who may take an upgrade request; true: it was its own. */
type UpgradeTaker = (request: IncomingMessage, socket: Duplex, head: Buffer) => boolean

const CLOSE_GRACE_MS = 1000
const MAX_CHUNK_BYTES = 65_536

export class WebchatServer {
  private readonly wss: WebSocketServer
  private readonly connections = new Set<Connection>()
  private readonly rooms = new Map<string, Room>()
  private readonly closing = new Set<Promise<void>>()
  private context: ConnectionContext | undefined
  private heartbeat: Timer | undefined
  private emptied: (() => void) | undefined

  constructor(
    private readonly options: CheckedOptions,
    private readonly identity: VisitorIdentity,
    private readonly files: FileStore | null,
  ) {
    this.wss = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: options.maxFrameBytes,
    })
  }

  get size(): number {
    return this.connections.size
  }

  /** The log in use while open: the sink's shared one, or this process's own. */
  open(sink: ProviderSink, log: MessageLog): void {
    const { account, burst, perMinute, maxTextLength, typing } = this.options
    const chunkBytes = Math.min(this.options.maxFrameBytes, MAX_CHUNK_BYTES)
    this.context = {
      sink,
      log,
      clock: sink.clock,
      identity: this.identity,
      outage: new LogOutage({ clock: sink.clock, logger: sink.logger, provider: `webchat:${account}` }),
      channel: (visitorId) => channelOf(account, visitorId),
      burst,
      perMinute,
      maxTextLength,
      typing,
      files:
        this.options.files === null || this.files === null
          ? undefined
          : { uploads: new Uploads(this.options.files, chunkBytes, sink.clock), store: this.files },
      enter: (visitorId) => this.enter(visitorId),
      left: (connection) => this.left(connection),
    }
    this.scheduleHeartbeat(sink)
  }

  /** Tells every page to go to another replica and waits until all sockets are gone, a second at most. */
  async close(): Promise<void> {
    const context = this.context
    if (context === undefined) return
    this.context = undefined
    this.heartbeat?.cancel()
    context.outage.close()
    for (const connection of this.connections) connection.close(CLOSE.goingAway, 'stopping')
    if (this.connections.size > 0) {
      const grace = context.clock.setTimeout(() => {
        for (const connection of this.connections) connection.terminate()
      }, CLOSE_GRACE_MS)
      await new Promise<void>((resolve) => (this.emptied = resolve))
      this.emptied = undefined
      grace.cancel()
    }
    await Promise.all(this.closing)
  }

  /** Handles upgrades of `server` for this chat's path. @returns the way back. */
  attach(server: UpgradeServer): () => void {
    return addTaker(server, (request, socket, head) => this.upgrade(request, socket, head))
  }

  private upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    if (pathOf(request) !== `${this.options.path}/ws`) return false
    const context = this.context
    // Without a listener a reset during the handshake would be thrown.
    socket.on('error', () => socket.destroy())
    if (context === undefined) refuseUpgrade(socket, '503 Service Unavailable', 'Retry-After: 2')
    else if (this.connections.size >= this.options.maxConnections) {
      context.sink.logger.warn(
        { connections: this.connections.size },
        'webchat: too many sockets, one refused',
      )
      refuseUpgrade(socket, '503 Service Unavailable', 'Retry-After: 10')
    } else if (!originAllowed(request, this.options.allowedOrigins)) {
      context.sink.logger.warn(
        { origin: request.headers.origin },
        'webchat: socket of a foreign origin refused',
      )
      refuseUpgrade(socket, '403 Forbidden')
    } else {
      this.wss.handleUpgrade(request, socket, head, (opened) => this.opened(opened, context))
    }
    return true
  }

  private opened(socket: WebSocket, context: ConnectionContext): void {
    // Stopped between the request and here.
    if (this.context !== context) return socket.close(CLOSE.goingAway, 'stopping')
    this.connections.add(new Connection(socket, context))
  }

  private enter(visitorId: string): Room {
    let room = this.rooms.get(visitorId)
    if (room === undefined) {
      const context = this.context
      if (context === undefined) throw new Error('webchat: a socket joined after the server was closed')
      room = new Room(visitorId, context)
      this.rooms.set(visitorId, room)
    }
    return room
  }

  private left(connection: Connection): void {
    this.connections.delete(connection)
    const room = connection.room
    if (room !== undefined && room.leave(connection)) {
      const closing: Promise<void> = this.retire(room).finally(() => this.closing.delete(closing))
      this.closing.add(closing)
    }
    if (this.connections.size === 0) this.emptied?.()
  }

  /** Closes a room that everybody left, unless the visitor is back by the time that its last message is accepted. */
  private async retire(room: Room): Promise<void> {
    await room.idle()
    if (room.members.size > 0 || this.rooms.get(room.visitorId) !== room) return
    this.rooms.delete(room.visitorId)
    await room.close()
  }

  private scheduleHeartbeat(sink: ProviderSink): void {
    this.heartbeat = sink.clock.setTimeout(
      () => {
        for (const connection of this.connections) connection.beat()
        if (this.context !== undefined) this.scheduleHeartbeat(sink)
      },
      this.options.heartbeatMs,
      { background: true },
    )
  }
}

/** Where a visitor's messages are logged; the same on every replica. */
export function channelOf(account: string, visitorId: string): string {
  return `webchat:${account}:${visitorId}`
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '/').split('?', 1)[0] ?? '/'
}

/** Browsers always name the origin; what sends none is no browser, and a browser's user is who is protected. */
function originAllowed(request: IncomingMessage, allowed: CheckedOptions['allowedOrigins']): boolean {
  const origin = request.headers.origin
  if (allowed === 'any' || origin === undefined) return true
  if (allowed !== 'same') return allowed.includes(origin)
  return URL.canParse(origin) && new URL(origin).host === request.headers.host?.toLowerCase()
}

function refuseUpgrade(socket: Duplex, status: string, ...headers: string[]): void {
  socket.end(
    [`HTTP/1.1 ${status}`, 'Connection: close', 'Content-Length: 0', ...headers, '', ''].join('\r\n'),
  )
}

interface Attachment {
  takers: Set<UpgradeTaker>
  listener: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
}

const attachments = new WeakMap<UpgradeServer, Attachment>()

function addTaker(server: UpgradeServer, taker: UpgradeTaker): () => void {
  const attached = attachments.get(server) ?? attachTo(server)
  attached.takers.add(taker)
  return () => {
    attached.takers.delete(taker)
    if (attached.takers.size > 0) return
    server.off('upgrade', attached.listener)
    if (attachments.get(server) === attached) attachments.delete(server)
  }
}

function attachTo(server: UpgradeServer): Attachment {
  const takers = new Set<UpgradeTaker>()
  const attached: Attachment = {
    takers,
    listener: (request, socket, head) => {
      for (const one of takers) if (one(request, socket, head)) return
      if (server.listenerCount('upgrade') === 1) refuseUpgrade(socket, '404 Not Found')
    },
  }
  server.on('upgrade', attached.listener)
  attachments.set(server, attached)
  return attached
}
