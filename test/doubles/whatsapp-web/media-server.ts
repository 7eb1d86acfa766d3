/**
 * A double of WhatsApp's media servers: keeps what is uploaded, encrypted as it comes, and hands it out by path. It
 * speaks plain HTTP: `agent` brings uploads here, `reroute` the downloads of this process.
 */
import { EventEmitter } from 'node:events'
import { createServer, type Server } from 'node:http'
import { Agent } from 'node:https'
import { connect, type AddressInfo } from 'node:net'

export class MediaServer extends EventEmitter<{ upload: [] }> {
  readonly files = new Map<string, Buffer>()
  /** What is uploaded is answered when this has resolved. */
  busy: Promise<void> = Promise.resolve()

  private constructor(private readonly server: Server) {
    super()
    server.on('request', (request, response) => {
      const path = (request.url ?? '').split('?')[0] ?? ''
      if (request.method !== 'POST') {
        const file = this.files.get(path)
        response.writeHead(file === undefined ? 404 : 200).end(file)
        return
      }
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        this.files.set(path, Buffer.concat(chunks))
        const answer = JSON.stringify({ url: `https://mmg.whatsapp.net${path}`, direct_path: path })
        this.emit('upload')
        void this.busy.then(() => response.end(answer))
      })
    })
  }

  static async start(): Promise<MediaServer> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new MediaServer(server)
  }

  private get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  /** For `socketOptions.fetchAgent`. */
  get agent(): Agent {
    const agent = new Agent()
    Object.assign(agent, { createConnection: () => connect(this.port, '127.0.0.1') })
    return agent
  }

  /** Sends what this process fetches from WhatsApp's servers here. @returns what undoes it. */
  reroute(): () => void {
    const { fetch } = globalThis
    globalThis.fetch = (input, init) => {
      const url = new URL(String(input instanceof Request ? input.url : input))
      if (!url.hostname.endsWith('.whatsapp.net')) return fetch(input, init)
      const { dispatcher: _, ...rest } = { ...init } as RequestInit & { dispatcher?: unknown }
      return fetch(`http://127.0.0.1:${this.port}${url.pathname}`, rest)
    }
    return () => {
      globalThis.fetch = fetch
    }
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
  }
}
