/**
 * A transport that a test plays both ends of: what users write is handed in with `receive`, what the bot says is in
 * `sent`. Behaves as the provider contract says, so that what runs on it runs on a real transport.
 */
import { ConfigError, ProviderError, SendError, type SendOutcome } from '../contracts/errors.js'
import type { Message, OutgoingContent, Sent } from '../contracts/message.js'
import type {
  Provider,
  ProviderCapabilities,
  ProviderSink,
  ProviderState,
  SendOptions,
  SendTarget,
} from '../contracts/provider.js'
import { refuseUnknownOptions } from '../kernel/options.js'
import { systemClock } from '../runtime/system-clock.js'

export interface FakeSend {
  to: SendTarget
  content: OutgoingContent
  /** Its text, or the caption, or empty. */
  text: string
  options: SendOptions
  receipt: Sent
  /** The provider object that made it: several replicas may share one `FakePlatform`. */
  by: FakeProvider
}

/** What all replicas' fake providers of one account say, in order. */
export class FakePlatform {
  readonly sent: FakeSend[] = []
  private readonly listeners = new Set<(send: FakeSend) => void>()
  private sequence = 0
  private received = 0

  /** For what users write: no two messages of the account have one id, whichever replica gets them. */
  nextInboundId(): string {
    this.received += 1
    return `in-${this.received}`
  }

  nextId(): string {
    this.sequence += 1
    return `fake-${this.sequence}`
  }

  add(send: FakeSend): void {
    this.sent.push(send)
    for (const listener of [...this.listeners]) listener(send)
  }

  onSend(listener: (send: FakeSend) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }
}

export interface FakeProviderOptions {
  /** `kind:account`. Default `fake:test`. */
  id?: string
  capabilities?: ProviderCapabilities
  /** Connects by itself when started. Default true; else the test calls `open()`. */
  autoOpen?: boolean
  /** Shared by the providers of several replicas. Default: one of its own. */
  platform?: FakePlatform
}

/** How a scripted send fails: an outcome, an error, or a function that decides (undefined: it succeeds). */
export type SendFailure =
  | SendOutcome
  | Error
  | ((to: SendTarget, content: OutgoingContent) => Error | undefined | Promise<Error | undefined>)

const WAIT_MS = 5000

export class FakeProvider implements Provider {
  readonly id: string
  readonly capabilities: ProviderCapabilities
  readonly platform: FakePlatform
  /** How often it connected: an exclusive account must never be connected twice at once. */
  connections = 0
  private current: ProviderState = { status: 'closed', reason: 'not started' }
  private sink: ProviderSink | null = null
  private readonly autoOpen: boolean
  private readonly failures: SendFailure[] = []
  private read = 0
  private onAbort: (() => void) | null = null
  private signal: AbortSignal | null = null

  constructor(options: FakeProviderOptions = {}) {
    refuseUnknownOptions('FakeProvider', options, ['id', 'capabilities', 'autoOpen', 'platform'])
    this.id = options.id ?? 'fake:test'
    this.capabilities = options.capabilities ?? { buttons: true, list: true, media: true, groups: true }
    this.autoOpen = options.autoOpen ?? true
    this.platform = options.platform ?? new FakePlatform()
  }

  get state(): ProviderState {
    return this.current
  }

  /** Started and not stopped. */
  get started(): boolean {
    return this.sink !== null
  }

  async start(sink: ProviderSink, signal: AbortSignal): Promise<void> {
    if (this.sink) return
    if (signal.aborted) return
    this.sink = sink
    this.signal = signal
    this.onAbort = () => void this.stop()
    signal.addEventListener('abort', this.onAbort, { once: true })
    this.setState({ status: 'connecting' })
    if (this.autoOpen) this.open()
  }

  async stop(): Promise<void> {
    if (!this.sink) return
    if (this.onAbort) this.signal?.removeEventListener('abort', this.onAbort)
    this.setState({ status: 'closed', reason: 'stopped' })
    this.sink = null
  }

  async send(to: SendTarget, content: OutgoingContent, options: SendOptions = {}): Promise<Sent> {
    options.signal?.throwIfAborted()
    if (this.current.status !== 'open') {
      throw new SendError(`Provider "${this.id}" is not connected.`, {
        provider: this.id,
        outcome: 'retryable',
      })
    }
    const failure = this.failures.shift()
    const error = failure === undefined ? undefined : await this.failureOf(failure, to, content)
    const text = content.text ?? content.media?.caption ?? ''
    const send: FakeSend = { to, content, text, options, receipt: { id: this.platform.nextId() }, by: this }
    // Uncertain: it went out, only the answer is missing.
    if (!error || (error instanceof SendError && error.outcome === 'uncertain')) this.platform.add(send)
    if (error) throw error
    return send.receipt
  }

  // --- the test's side ------------------------------------------------------------------------------------------

  /** Everything said through this provider, in order. */
  get sent(): FakeSend[] {
    return this.platform.sent.filter((send) => send.by === this)
  }

  /** The texts of `sent`. */
  get texts(): string[] {
    return this.sent.map((send) => send.text)
  }

  /**
   * Hands in a message, as the platform would. A string is its body.
   * @returns the whole message, once the bot has accepted it (not: handled it). @throws what the bot refused it with.
   */
  async receive(message: string | Partial<Message>): Promise<Message> {
    if (!this.sink) {
      throw new ConfigError(`Provider "${this.id}" is not started: it receives only after bot.start().`, {
        option: 'provider',
        value: this.id,
      })
    }
    const whole = this.message(message)
    await this.sink.message(whole)
    return whole
  }

  /** Fills in what a test does not care about. */
  message(message: string | Partial<Message>): Message {
    const id = this.platform.nextInboundId()
    const given = typeof message === 'string' ? { body: message } : message
    const chatId = given.chatId ?? '100'
    return {
      id,
      from: given.participant ?? chatId,
      type: 'text',
      body: '',
      isGroup: given.participant !== undefined,
      timestamp: this.sink?.clock.now() ?? systemClock.now(),
      ...given,
      chatId,
    }
  }

  /** The next send that was not returned before, of those through this provider; waits for it. */
  async nextSent(options: { timeoutMs?: number } = {}): Promise<FakeSend> {
    const index = this.read
    this.read += 1
    await this.waitForSends(index + 1, options)
    const send = this.sent[index]
    if (!send) throw new Error('unreachable: the send was counted')
    return send
  }

  /** Resolves when at least `count` sends were made through this provider. */
  async waitForSends(count: number, options: { timeoutMs?: number } = {}): Promise<FakeSend[]> {
    const timeoutMs = options.timeoutMs ?? WAIT_MS
    await new Promise<void>((resolve, reject) => {
      const check = (): boolean => this.sent.length >= count
      if (check()) return resolve()
      const leave = this.platform.onSend(() => {
        if (!check()) return
        timer.cancel()
        leave()
        resolve()
      })
      const timer = systemClock.setTimeout(() => {
        leave()
        const said = this.texts.map((text) => JSON.stringify(text)).join(', ')
        reject(new Error(`Waited ${timeoutMs} ms for send ${count}; so far: ${said === '' ? 'none' : said}.`))
      }, timeoutMs)
    })
    return this.sent
  }

  /** The next sends fail, one for each. */
  failNextSends(...failures: SendFailure[]): void {
    this.failures.push(...failures)
  }

  open(): void {
    if (!this.sink || this.current.status === 'open') return
    this.connections += 1
    this.setState({ status: 'open' })
  }

  /** The platform ends the connection. */
  close(reason: string, final = false): void {
    if (this.sink) this.setState(final ? { status: 'closed', reason, final } : { status: 'closed', reason })
  }

  /** The platform reports something nobody waits for. */
  fail(error: unknown): void {
    this.sink?.error(error)
  }

  private setState(state: ProviderState): void {
    this.current = state
    this.sink?.state(state)
  }

  private async failureOf(
    failure: SendFailure,
    to: SendTarget,
    content: OutgoingContent,
  ): Promise<Error | undefined> {
    if (typeof failure === 'function') return failure(to, content)
    if (failure instanceof Error) return failure
    return new SendError(`The fake platform was told to fail this send (${failure}).`, {
      provider: this.id,
      outcome: failure,
    })
  }
}

/** A failure to connect, for tests of the runtime. */
export function connectionRefused(provider: string, final = false): ProviderError {
  return new ProviderError(`The fake platform of "${provider}" refuses to connect.`, {
    provider,
    reason: 'refused',
    final,
  })
}
