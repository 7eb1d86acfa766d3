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
  readonly connections: number
  /** Connections accepted so far. */
  readonly accepted: number
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

/** One direction of one connection: pieces on their way, in order. */
class Pipe {
  private readonly pieces: Array<{ data: Buffer | null; due: number }> = []
  private timer: NodeJS.Timeout | undefined

  constructor(
    private readonly to: Socket,
    private readonly line: Line,
  ) {}

  /** @param data null: the sender has ended its side. */
  push(data: Buffer | null): void {
    this.pieces.push({ data, due: performance.now() + this.line.delayMs })
    this.flush()
  }

  flush(): void {
    clearTimeout(this.timer)
    if (this.line.silent) return
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

/** @param options.to where to connect to: a URL such as a Redis's, or host and port. */
export async function startFaultProxy({
  to,
}: {
  to: string | { host?: string; port: number }
}): Promise<FaultProxy> {
  const target = typeof to === 'string' ? new URL(to) : undefined
  const host = target?.hostname ?? (to as { host?: string }).host ?? '127.0.0.1'
  const port = Number(target?.port ?? (to as { port: number }).port)
  const lines = { 'to-server': line(), 'to-client': line() }
  const open = new Set<{ pipes: Pipe[]; reset: () => void }>()
  let accepted = 0
  let refusing = false

  const server = createServer({ allowHalfOpen: true }, (client) => {
    accepted += 1
    client.on('error', () => {}) // A reset is what this proxy is for.
    if (refusing) return void client.resetAndDestroy()
    const upstream = connect({ host, port, allowHalfOpen: true })
    const pipes = [new Pipe(upstream, lines['to-server']), new Pipe(client, lines['to-client'])] as const
    const connection = {
      pipes: [...pipes],
      reset() {
        open.delete(connection)
        for (const pipe of pipes) pipe.drop()
        for (const socket of [client, upstream]) socket.resetAndDestroy()
      },
    }
    open.add(connection)
    for (const [socket, pipe] of [[client, pipes[0]] as const, [upstream, pipes[1]] as const]) {
      socket.setNoDelay(true)
      socket.on('data', (data: Buffer) => pipe.push(data))
      socket.on('end', () => pipe.push(null))
      socket.on('error', () => connection.reset())
    }
    let closed = 0
    for (const socket of [client, upstream]) {
      socket.on('close', () => {
        closed += 1
        if (closed === 2) open.delete(connection)
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const own = server.address() as AddressInfo

  const pipesOf = () => [...open].flatMap(({ pipes }) => pipes)
  const set = (direction: Direction, change: Partial<Line>) => {
    for (const name of ['to-server', 'to-client'] as const) {
      if (direction === 'both' || direction === name) Object.assign(lines[name], change)
    }
  }
  const reset = () => {
    for (const connection of [...open]) connection.reset()
  }
  const stop = async () => {
    reset()
    if (!server.listening) return
    server.close()
    await once(server, 'close')
  }
  onTestEnd(stop)
  return {
    host: own.address,
    port: own.port,
    url: urlThrough(target, own),
    get connections() {
      return open.size
    },
    get accepted() {
      return accepted
    },
    delay: (ms, direction = 'both') => set(direction, { delayMs: ms }),
    blackhole: (direction = 'both') => set(direction, { silent: true }),
    reset,
    cut() {
      refusing = true
      reset()
    },
    heal() {
      refusing = false
      set('both', { delayMs: 0, silent: false })
      for (const pipe of pipesOf()) pipe.hurry()
    },
    stop,
  }
}

function line(): Line {
  return { delayMs: 0, silent: false }
}

function urlThrough(target: URL | undefined, own: AddressInfo): string {
  const url = new URL(target?.href ?? 'tcp://localhost')
  url.hostname = own.address
  url.port = String(own.port)
  return url.href
}
