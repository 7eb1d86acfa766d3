/** What the doubles of HTTP services share: a server on a free port, an end that leaves nothing open, waiting. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

export abstract class HttpDouble {
  private readonly sockets = new Set<Socket>()
  private readonly watchers = new Set<() => void>()
  protected readonly server = createServer((request, response) => {
    this.answer(request, response).catch((error: unknown) => response.destroy(error as Error))
  })

  constructor() {
    this.server.on('connection', (socket) => {
      this.sockets.add(socket)
      socket.on('close', () => this.sockets.delete(socket))
    })
  }

  /** Base URL of the service, without a slash at its end. */
  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  /** @param port default: a free one. */
  async listen(port = 0): Promise<this> {
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject)
      this.server.listen(port, '127.0.0.1', resolve)
    })
    return this
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()))
    // What was on its way in still arrives; nobody would end it.
    this.server.on('connection', endSocket)
    for (const socket of this.sockets) socket.destroy()
    await closed
    this.server.off('connection', endSocket)
  }

  /** Resolves as soon as `condition` holds; it is asked after whatever the double takes or answers. */
  async until(condition: (double: this) => boolean): Promise<void> {
    while (!condition(this)) {
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.watchers.delete(wake)
          resolve()
        }
        this.watchers.add(wake)
      })
    }
  }

  protected abstract answer(request: IncomingMessage, response: ServerResponse): Promise<void>

  /** Something happened that `until` may be waiting for. */
  protected wake(): void {
    for (const wake of this.watchers) wake()
  }
}

function endSocket(socket: Socket): void {
  socket.destroy()
}

export function replyJson(
  response: ServerResponse,
  status: number,
  json: object,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(json))
}

export async function readAll(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts)
}

/** A field of a foreign body that should be text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
