/** A transport for these tests: messages are handed in by hand or by webhook, sends are kept, pages are two lines. */
import type {
  Message,
  OutgoingContent,
  PageRequest,
  PageResponse,
  Provider,
  ProviderCapabilities,
  ProviderSink,
  ProviderState,
  SendTarget,
  Sent,
  UpgradeServer,
  WebhookRequest,
  WebhookResponse,
} from '@botmesh/core'

export interface Delivered {
  chatId: string
  text: string
}

/** Ids are the platform's: the same on no two messages, whichever replica gets them. */
let serial = 0

export class TestProvider implements Provider {
  readonly id: string
  readonly capabilities: ProviderCapabilities
  readonly sent: Delivered[] = []
  readonly calls: WebhookRequest[] = []
  readonly attachedTo: UpgradeServer[] = []
  starts = 0
  /** The platform takes what is sent and never answers. */
  silent = false
  private sink: ProviderSink | undefined
  private waiting: (() => void)[] = []
  private current: ProviderState = { status: 'closed', reason: 'not started' }

  constructor(options: { account?: string; exclusive?: boolean } = {}) {
    this.id = `test:${options.account ?? 'a'}`
    this.capabilities = { exclusiveSession: options.exclusive ?? false }
  }

  get state(): ProviderState {
    return this.current
  }

  start(sink: ProviderSink, signal: AbortSignal): Promise<void> {
    this.sink = sink
    this.starts++
    signal.addEventListener('abort', () => void this.stop(), { once: true })
    this.change({ status: 'connecting' })
    this.change({ status: 'open' })
    return Promise.resolve()
  }

  stop(): Promise<void> {
    if (this.current.status !== 'closed') this.change({ status: 'closed', reason: 'stopped' })
    return Promise.resolve()
  }

  /** Closes the connection as the platform would. */
  close(reason: string): void {
    this.change({ status: 'closed', reason })
  }

  send(to: SendTarget, content: OutgoingContent): Promise<Sent> {
    this.sent.push({ chatId: to.chatId, text: content.text ?? '' })
    for (const wake of this.waiting.splice(0)) wake()
    if (this.silent) return new Promise(() => undefined)
    return Promise.resolve({ id: `out-${this.sent.length}` })
  }

  /** A message from the platform; resolves when it was accepted. */
  deliver(chatId: string, body: string, id = `in-${++serial}`): Promise<void> {
    if (this.sink === undefined) return Promise.reject(new Error('not started'))
    return this.sink.message(messageOf(chatId, body, id))
  }

  /** The first `count` texts sent to a chat, once there are so many. */
  async replies(chatId: string, count: number): Promise<string[]> {
    for (;;) {
      const texts = this.sent.filter((one) => one.chatId === chatId).map((one) => one.text)
      if (texts.length >= count) return texts
      await new Promise<void>((resolve) => this.waiting.push(resolve))
    }
  }

  private change(state: ProviderState): void {
    this.current = state
    this.sink?.state(state)
  }
}

/** With a webhook: answers with the length of the raw body, and hands `{ chat, text, id }` on. */
export class WebhookTestProvider extends TestProvider {
  async handle(request: WebhookRequest): Promise<WebhookResponse> {
    this.calls.push(request)
    const body = Buffer.from(request.rawBody).toString('utf8')
    if (body.startsWith('{')) {
      const { chat, text, id } = JSON.parse(body) as { chat?: string; text?: string; id?: string }
      if (chat !== undefined && text !== undefined) await this.deliver(chat, text, id)
    }
    return {
      status: 200,
      body: `${request.method} ${request.rawBody.byteLength} ${request.query['mode'] ?? '-'}`,
      headers: { 'content-type': 'text/plain' },
    }
  }
}

/** With a page and a socket. */
export class PageTestProvider extends TestProvider {
  http(request: PageRequest): PageResponse | null {
    const [path] = request.path.split('?')
    return path === '/page'
      ? { status: 200, headers: { 'content-type': 'text/html' }, body: '<p>page</p>' }
      : null
  }

  attach(server: UpgradeServer): () => void {
    this.attachedTo.push(server)
    return () => void this.attachedTo.splice(this.attachedTo.indexOf(server), 1)
  }
}

export function messageOf(chatId: string, body: string, id: string): Message {
  return { id, chatId, from: chatId, type: 'text', body, isGroup: false, timestamp: 1 }
}
