/**
 * Web chat: a page of our own over a WebSocket. Shared (P2): every replica serves visitors; what any replica sends
 * is appended to the visitor's log, from which every socket of that visitor, on whichever replica, is fed.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  MemoryLog,
  ProviderError,
  SendError,
  type MessageLog,
  type OutgoingContent,
  type PageRequest,
  type PageResponse,
  type Provider,
  type ProviderCapabilities,
  type ProviderSink,
  type ProviderState,
  type SendOptions,
  type SendTarget,
  type Sent,
  type UpgradeServer,
} from '@botmesh/core'
import { FileStore } from './file-store.js'
import { checkOptions, type CheckedOptions, type WebchatOptions } from './options.js'
import { PageServer } from './page-server.js'
import { renderOutbound } from './render-outbound.js'
import { VisitorIdentity } from './visitor-identity.js'
import { channelOf, WebchatServer } from './webchat.server.js'

interface Running {
  sink: ProviderSink
  log: MessageLog
  signal: AbortSignal
  onAbort: () => void
}

/**
 * ```ts
 * const chat = new WebchatProvider({ account: 'shop', secret: process.env.WEBCHAT_SECRET })
 * const server = createServer(chat.middleware())   // or app.use(chat.middleware())
 * chat.attach(server)                              // the socket, on `<path>/ws`
 * ```
 */
export class WebchatProvider implements Provider {
  readonly id: string
  /** A repeated send carries the same id and is shown once, so one whose fate is unknown may be sent again. */
  readonly capabilities: ProviderCapabilities
  /** Where the page is, such as `/webchat`. */
  readonly path: string
  private readonly options: CheckedOptions
  private readonly server: WebchatServer
  private readonly page: PageServer
  private readonly files: FileStore | null
  /** Outlives stop and start: a page finds its messages again. */
  private ownLog: MemoryLog | undefined
  private running: Running | undefined
  private stopping: Promise<void> | undefined
  /** Counts the calls of stop, so that a start which waits for an earlier stop notices a later one. */
  private stops = 0
  private current: ProviderState = { status: 'closed', reason: 'not started' }

  /** @throws ConfigError for an unknown option or an impossible value. */
  constructor(options: WebchatOptions = {}) {
    this.options = checkOptions(options)
    this.id = `webchat:${this.options.account}`
    this.path = this.options.path
    const { account, secrets, files } = this.options
    this.capabilities = {
      exclusiveSession: false,
      buttons: true,
      list: true,
      media: true,
      groups: false,
      uncertainSends: 'resend',
      receives: [
        'text',
        ...(files === null ? [] : ['media' as const]),
        'button replies',
        'list replies',
        'quotes',
      ],
      sends: ['text', 'media', 'buttons', 'lists', 'quotes', 'typing'],
    }
    this.files = files === null ? null : new FileStore(account, files.keepMs)
    this.server = new WebchatServer(this.options, new VisitorIdentity(account, secrets), this.files)
    this.page = new PageServer(this.options)
  }

  get state(): ProviderState {
    return this.current
  }

  /** Open sockets on this replica. */
  get connections(): number {
    return this.server.size
  }

  /**
   * Takes the WebSocket upgrades of `<path>/ws` from an HTTP(S) server and leaves all others alone. May be called
   * before `start` (answers 503 until then) and for several servers.
   * @returns a function that undoes it.
   */
  attach(server: UpgradeServer): () => void {
    return this.server.attach(server)
  }

  /** Answers a request for the page or its files, also before `start`. @returns null if it is for something else. */
  http(request: PageRequest): PageResponse | null {
    return this.page.answer(request)
  }

  /** `http` as a Connect/Express middleware, and as a `node:http` listener (then all else is 404). */
  middleware(): (request: IncomingMessage, response: ServerResponse, next?: () => void) => void {
    return (request, response, next) => {
      // Express takes a mount path off `url`; `originalUrl` keeps it.
      const { originalUrl } = request as IncomingMessage & { originalUrl?: string }
      const method = request.method ?? 'GET'
      const answer = this.page.answer({
        method,
        path: originalUrl ?? request.url ?? '/',
        headers: request.headers,
      })
      if (answer === null && next !== undefined) return next()
      response.writeHead(answer?.status ?? 404, answer?.headers)
      response.end(method === 'HEAD' ? undefined : answer?.body)
    }
  }

  /** Never waits for anything outside: open at once. Starting twice is starting once. */
  async start(sink: ProviderSink, signal: AbortSignal): Promise<void> {
    const stops = this.stops
    await this.stopping
    if (this.running !== undefined || signal.aborted || stops !== this.stops) return
    const log = sink.log ?? (this.ownLog ??= new MemoryLog(sink.clock))
    const onAbort = () => void this.stop().catch((error: unknown) => sink.error(error))
    this.running = { sink, log, signal, onAbort }
    signal.addEventListener('abort', onAbort, { once: true })
    this.report({ status: 'connecting' })
    if (this.options.secretIsRandom && sink.log !== undefined) {
      sink.logger.warn(
        { provider: this.id },
        'webchat: no `secret` given: visitors become strangers on another replica and after a restart; give every replica the same secret',
      )
    }
    this.server.open(sink, log)
    this.report({ status: 'open' })
  }

  /** Closes every socket (pages go to another replica by themselves). Idempotent. */
  async stop(): Promise<void> {
    this.stops += 1
    const running = this.running
    if (running === undefined) return await this.stopping
    this.running = undefined
    running.signal.removeEventListener('abort', running.onAbort)
    this.stopping = this.server.close().finally(() => {
      this.stopping = undefined
      this.report({ status: 'closed', reason: 'stopped' }, running.sink)
    })
    await this.stopping
  }

  /**
   * Appends to the visitor's log: every socket of theirs gets it, now or when it connects within a day.
   * @returns the idempotency key if there is one, else a new id.
   * @throws SendError: final for content that cannot be shown, retryable while stopped, uncertain if the log failed.
   */
  async send(to: SendTarget, content: OutgoingContent, options: SendOptions = {}): Promise<Sent> {
    options.signal?.throwIfAborted()
    const running = this.running
    if (running === undefined) {
      throw new SendError('The web chat is not started on this replica.', {
        provider: this.id,
        outcome: 'retryable',
      })
    }
    const id = options.idempotencyKey ?? running.sink.random.uuid()
    const logged = renderOutbound(this.id, content, running.sink.clock.now(), id)
    try {
      await running.log.append(channelOf(this.options.account, to.chatId), JSON.stringify(logged))
    } catch (error) {
      throw new SendError(
        'The log of the web chat did not confirm the message.',
        { provider: this.id, outcome: 'uncertain' },
        error,
      )
    }
    return { id }
  }

  /**
   * Fetches a file that a visitor sent, on any replica that shares the log, for as long as `files.keep` says. Its type
   * and name are the visitor's claim: look at the content before you trust it.
   * @param options.maxBytes default: any size
   * @throws ProviderError final if it is there no more, or larger; retryable while stopped. What the store throws.
   */
  async download(media: { id?: string }, options: { maxBytes?: number } = {}): Promise<{ data: Uint8Array }> {
    const { running, files } = this
    if (running === undefined) throw this.noFile('the web chat is not started on this replica', false)
    const data = (await files?.read(running.log, media.id ?? '')) ?? null
    if (data === null) throw this.noFile('it is not in the log (any more)')
    if (data.byteLength > (options.maxBytes ?? Infinity)) {
      throw this.noFile(`it has ${data.byteLength} bytes, and maxBytes is ${options.maxBytes}`)
    }
    return { data }
  }

  private noFile(reason: string, final = true): ProviderError {
    return new ProviderError(`The file cannot be had: ${reason}.`, { provider: this.id, reason, final })
  }

  private report(state: ProviderState, sink = this.running?.sink): void {
    this.current = state
    sink?.state(state)
  }
}
