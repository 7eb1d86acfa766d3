/** A replica of a web chat on a real HTTP server, and a page that speaks its protocol through a real WebSocket. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocket, type ClientOptions } from 'ws'
import {
  systemClock,
  systemRandom,
  type Clock,
  type Message,
  type MessageLog,
  type ProviderState,
} from '@botmesh/core'
import type { RecordedLog } from '@botmesh/core/testing'
import { WebchatProvider, type ServerFrame, type WebchatOptions } from '@botmesh/webchat'

export const SECRET = 'a secret for tests only'

export interface Replica {
  provider: WebchatProvider
  server: Server
  url: string
  messages: Message[]
  states: ProviderState[]
  warnings: string[]
  /** Lines of `info` and above. */
  logs: RecordedLog[]
  errors: unknown[]
  /** What the runtime does with a message; replace it to make it fail or answer. */
  accept: (message: Message) => Promise<void>
  abort: AbortController
  start(): Promise<void>
  close(): Promise<void>
}

export async function replica(
  options: WebchatOptions = {},
  log?: MessageLog,
  clock: Clock = systemClock,
): Promise<Replica> {
  const provider = new WebchatProvider({ secret: SECRET, heartbeat: '150ms', ...options })
  const server = createServer(provider.middleware())
  provider.attach(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const note = (level: RecordedLog['level']) => (details: object, message: string) => {
    self.logs.push({ level, details, message })
    if (level !== 'info') self.warnings.push(message)
  }
  const self: Replica = {
    provider,
    server,
    url: `ws://127.0.0.1:${port}${provider.path}/ws`,
    messages: [],
    states: [],
    warnings: [],
    logs: [],
    errors: [],
    accept: async () => {},
    abort: new AbortController(),
    start: async () => {
      const ignore = () => {}
      await provider.start(
        {
          message: async (message) => {
            self.messages.push(message)
            await self.accept(message)
          },
          state: (state) => self.states.push(state),
          pairing: ignore,
          error: (error) => self.errors.push(error),
          logger: {
            debug: ignore,
            info: note('info'),
            warn: note('warn'),
            error: note('error'),
          },
          clock,
          random: systemRandom,
          ...(log === undefined ? {} : { log }),
        },
        self.abort.signal,
      )
    },
    close: async () => {
      await provider.stop()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  await self.start()
  return self
}

type Frame<T extends ServerFrame['t']> = Extract<ServerFrame, { t: T }>

export class Page {
  readonly frames: ServerFrame[] = []
  readonly closed: Promise<number>
  private readonly waiting = new Set<() => void>()

  private constructor(readonly socket: WebSocket) {
    socket.on('message', (data) => {
      this.frames.push(JSON.parse((data as Buffer).toString('utf8')) as ServerFrame)
      for (const check of this.waiting) check()
    })
    this.closed = new Promise((resolve) => socket.on('close', (code) => resolve(code)))
    socket.on('error', () => {})
  }

  static async open(url: string, options: ClientOptions = {}): Promise<Page> {
    const socket = new WebSocket(url, options)
    const page = new Page(socket)
    await once(socket, 'open')
    return page
  }

  /** Opens and says hello. */
  static async join(
    url: string,
    hello: object = {},
  ): Promise<Page & { visitor: { id: string; sig: string } }> {
    const page = await Page.open(url)
    page.push({ t: 'hello', v: 1, ...hello })
    const { visitor } = await page.next('welcome')
    return Object.assign(page, { visitor })
  }

  push(frame: object | string): void {
    this.socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  }

  say(text: string, cid: string): void {
    this.push({ t: 'msg', cid, text })
  }

  /** Waits until there are `count` frames of a kind that match, and returns the last one. */
  async next<T extends ServerFrame['t']>(
    kind: T,
    match: (frame: Frame<T>) => boolean = () => true,
    count = 1,
  ): Promise<Frame<T>> {
    for (;;) {
      const found = this.all(kind).filter(match)
      const last = found[count - 1]
      if (last !== undefined) return last
      await new Promise<void>((resolve) => {
        const check = () => (this.waiting.delete(check), resolve())
        this.waiting.add(check)
      })
    }
  }

  all<T extends ServerFrame['t']>(kind: T): Frame<T>[] {
    return this.frames.filter((frame): frame is Frame<T> => frame.t === kind)
  }

  /** Texts of the log's messages of one side, in the order received. */
  texts(from: 'bot' | 'visitor'): (string | undefined)[] {
    return this.all('msg')
      .filter((one) => one.from === from)
      .map((one) => one.text)
  }

  async leave(): Promise<void> {
    this.socket.close()
    await this.closed
  }
}
