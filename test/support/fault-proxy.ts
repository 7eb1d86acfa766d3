/**
 * A TCP proxy that goes wrong on command, to put between a client and a real server: slow, silent, reset, gone.
 * Bytes keep their order in each direction whatever happens; what a black hole swallowed arrives after `heal()`,
 * as TCP would deliver it, unless the connection was reset meanwhile.
 */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { once } from 'node:events'
import { onTestEnd } from './test-end.js'

export type Direction = 'both' | 'to-server' | 'to-client'

export interface FaultProxy {
  readonly host: string
  readonly port: number
  /** Address for clients, when `to` was a URL: the same with this proxy's host and port. */
  readonly url: string
  /** Connections open now. */
  connections(): number
  /** Connections accepted so far. */
  accepted(): number
  /** Delivers each piece of data `ms` later from now on. */
  delay(ms: number, direction?: Direction): void
  /** Nothing arrives any more, while connections stay open and new ones are accepted. */
  blackhole(direction?: Direction): void
  /** Resets the connections there are; new ones work. What was on its way is lost. */
  reset(): void
  /** Resets the connections there are and, until `heal()`, each new one. */
  cut(): void
  /** Back to an undisturbed line. */
  heal(): void
  /** Idempotent; happens by itself when the spec file ends. */
  stop(): Promise<void>
}

/** How one direction behaves now. */
interface Line {
  delayMs: number
  silent: boolean
}

type Lines = Record<Exclude<Direction, 'both'>, Line>

/** One direction of one connection: pieces on their way, in order. */
class Pipe {
  private readonly pieces: Array<{ data: Buffer | null; due: number }> = []
  private timer: NodeJS.Timeout | undefined

  constructor(
    private readonly to: Socket,
    private readonly how: Line,
  ) {}

  /** @param data null: the sender has ended its side. */
  push(data: Buffer | null): void {
    this.pieces.push({ data, due: performance.now() + this.how.delayMs })
    this.flush()
  }

  flush(): void {
    clearTimeout(this.timer)
    if (this.how.silent) return
    for (let piece = this.pieces[0]; piece !== undefined; piece = this.pieces[0]) {
      const wait = piece.due - performance.now()
      if (wait > 0) {
        this.timer = setTimeout(() => this.flush(), wait)
        return
      }
      this.pieces.shift()
      if (piece.data === null) this.to.end()
      else this.to.write(piece.data)
    }
  }

  hurry(): void {
    for (const piece of this.pieces) piece.due = 0
    this.flush()
  }

  drop(): void {
    clearTimeout(this.timer)
    this.pieces.length = 0
  }
}

/** A client's connection and the one to the server that belongs to it. */
class Connection {
  readonly pipes: readonly Pipe[]
  private readonly sockets: readonly Socket[]

  constructor(client: Socket, server: Socket, lines: Lines, onGone: (gone: Connection) => void) {
    const up = new Pipe(server, lines['to-server'])
    const down = new Pipe(client, lines['to-client'])
    this.pipes = [up, down]
    this.sockets = [client, server]
    this.connect(client, up)
    this.connect(server, down)
    void Promise.all(this.sockets.map((socket) => once(socket, 'close').catch(() => {}))).then(() =>
      onGone(this),
    )
  }

  reset(): void {
    for (const pipe of this.pipes) pipe.drop()
    for (const socket of this.sockets) resetNow(socket)
  }

  private connect(from: Socket, pipe: Pipe): void {
    from.setNoDelay(true)
    from.on('data', (data: Buffer) => pipe.push(data))
    from.on('end', () => pipe.push(null))
    from.on('error', () => this.reset())
  }
}

/** @param options.to where to connect to: a URL such as a Redis's, or host and port. */
export async function startFaultProxy(options: {
  to: string | { host?: string; port: number }
}): Promise<FaultProxy> {
  const { to } = options
  const target = new URL(typeof to === 'string' ? to : `tcp://${to.host ?? '127.0.0.1'}:${to.port}`)
  const lines: Lines = { 'to-server': line(), 'to-client': line() }
  const open = new Set<Connection>()
  let refusing = false
  let accepted = 0
  const server = createServer({ allowHalfOpen: true }, (client) => {
    accepted += 1
    client.on('error', () => {}) // A reset is what this proxy is for.
    if (refusing) return resetNow(client)
    const upstream = connect({ host: target.hostname, port: Number(target.port), allowHalfOpen: true })
    open.add(new Connection(client, upstream, lines, (gone) => open.delete(gone)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const reset = () => {
    for (const connection of open) connection.reset()
  }
  const stop = async () => {
    reset()
    if (!server.listening) return
    server.close()
    await once(server, 'close')
  }
  onTestEnd(stop)
  const { port, address: host } = server.address() as AddressInfo
  const own = new URL(target)
  own.host = `${host}:${port}`
  return {
    ...{ host, port, url: own.href, reset, stop },
    connections: () => open.size,
    accepted: () => accepted,
    delay: (ms, direction = 'both') => change(lines, direction, { delayMs: ms }),
    blackhole: (direction = 'both') => change(lines, direction, { silent: true }),
    cut() {
      refusing = true
      reset()
    },
    heal() {
      refusing = false
      change(lines, 'both', { delayMs: 0, silent: false })
      for (const { pipes } of open) for (const pipe of pipes) pipe.hurry()
    },
  }
}

/**
 * What `socket.resetAndDestroy()` is for. That ends the writing side first, and if the other side is gone before this
 * is done, Node 20 asks libuv for a reset in the middle of a shutdown, is refused, and keeps a handle that never
 * closes: the process then spins at its end. So: no shutdown, and no reset where one is under way.
 */
function resetNow(socket: Socket): void {
  if (!socket.writableEnded && !socket.connecting) Object.assign(socket, { resetAndClosing: true })
  socket.destroy()
}

function line(): Line {
  return { delayMs: 0, silent: false }
}

function change(lines: Lines, direction: Direction, to: Partial<Line>): void {
  for (const name of ['to-server', 'to-client'] as const) {
    if (direction === 'both' || direction === name) Object.assign(lines[name], to)
  }
}
