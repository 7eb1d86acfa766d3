/**
 * Telegram as a transport, on grammY's Bot API client: long polling (exclusive: one replica polls, the others stand
 * by) or webhook (shared: every replica receives). Wiring only; see session.ts for the life of one start.
 */
import {
  equalInConstantTime,
  headerOf,
  readJsonBody,
  SessionStarts,
  systemClock,
  webhookAnswer,
  type OutgoingContent,
  type Provider,
  type ProviderCapabilities,
  type ProviderSink,
  type ProviderState,
  type SendOptions,
  type SendTarget,
  type Sent,
  type WebhookRequest,
  type WebhookResponse,
} from '@botmesh/core'
import { readOptions, type TelegramOptions, type TelegramSettings } from './options.js'
import { updateIdOf } from './parse-inbound.js'
import { PollingSession } from './polling-session.js'
import { renderEdit, renderOutbound, renderTyping } from './render-outbound.js'
import type { Session } from './session.js'
import { TelegramClient } from './telegram.client.js'
import { WebhookSession } from './webhook-session.js'

export class TelegramProvider implements Provider {
  readonly id: string
  readonly capabilities: ProviderCapabilities
  /** Present in mode `'webhook'` only. */
  readonly handle?: (request: WebhookRequest) => Promise<WebhookResponse>

  private readonly settings: TelegramSettings
  private readonly client: TelegramClient
  private readonly starts = new SessionStarts<Session>()

  /** @throws ConfigError */
  constructor(options: TelegramOptions) {
    this.settings = readOptions(options)
    this.id = this.settings.id
    this.client = new TelegramClient(this.settings)
    this.capabilities = {
      buttons: true,
      list: true,
      media: true,
      groups: true,
      uncertainSends: 'skip',
      receives: [
        'text',
        'media',
        'button replies',
        'commands',
        'reactions',
        'quotes',
        'edits',
        'locations',
        'contacts',
        'threads',
        'groups',
      ],
      sends: ['text', 'media', 'buttons', 'lists', 'quotes', 'edits', 'typing', 'threads'],
      ...(this.settings.webhook === null ? { exclusiveSession: true } : {}),
    }
    if (this.settings.webhook !== null) this.handle = (request) => this.receive(request)
  }

  get state(): ProviderState {
    return this.starts.state
  }

  private get session(): Session | undefined {
    return this.starts.session
  }

  /**
   * Starts polling, or takes webhooks from now on. Starting twice without `stop` keeps the first sink (scenario 21).
   * @throws ProviderError if Telegram refuses the token.
   */
  start(sink: ProviderSink, signal: AbortSignal): Promise<void> {
    const parts = { client: this.client, settings: this.settings, sink, leadership: signal }
    // What is left of an earlier start ends first: two polls of one process would put each other off.
    return this.starts.start(() =>
      this.settings.webhook === null ? new PollingSession(parts) : new WebhookSession(parts),
    )
  }

  async stop(): Promise<void> {
    await this.starts.stop()
  }

  /**
   * Sends one message. Needs no running session.
   * @throws SendError, and the reason of `options.signal` if it aborted beforehand.
   */
  async send(to: SendTarget, content: OutgoingContent, options: SendOptions = {}): Promise<Sent> {
    options.signal?.throwIfAborted()
    return { id: await this.client.send(renderOutbound(this.id, to, content)) }
  }

  /** Replaces text and buttons of a message that this bot sent. @param id as `send` returned it. @throws SendError */
  async edit(id: string, content: OutgoingContent): Promise<void> {
    await this.client.act(renderEdit(this.id, id, content))
  }

  /** Shows "typing…" for five seconds or until the next message. @throws SendError */
  async typing(to: SendTarget): Promise<void> {
    await this.client.act(renderTyping(to))
  }

  /** Fetches a file that a message named. @param options.maxBytes default 20 MiB, Telegram's own limit. */
  async download(media: { id?: string }, options: { maxBytes?: number } = {}): Promise<{ data: Uint8Array }> {
    const clock = this.session?.sink.clock ?? systemClock
    return { data: await this.client.download(media.id ?? '', options.maxBytes ?? 20 * 1024 * 1024, clock) }
  }

  /**
   * One webhook call: 200 once the update is accepted, 503 if it was not (Telegram delivers it again), 4xx for what
   * is not from Telegram (scenario 25).
   */
  private async receive(request: WebhookRequest): Promise<WebhookResponse> {
    if (request.method !== 'POST') return webhookAnswer(405, 'use POST', { allow: 'POST' })
    if (request.rawBody.byteLength > this.settings.maxBodyBytes) return webhookAnswer(413, 'body too large')
    const given = headerOf(request, 'x-telegram-bot-api-secret-token')
    if (given === undefined || !equalInConstantTime(given, this.settings.webhook!.secret)) {
      return webhookAnswer(401, 'secret missing or wrong')
    }
    const { session } = this
    if (!(session instanceof WebhookSession) || session.over)
      return webhookAnswer(503, 'this replica stands by')
    const json = readJsonBody(request.rawBody)
    if (!json.ok) return json.response
    if (updateIdOf(json.value) === undefined) return webhookAnswer(400, 'not an update')
    return session.accept(json.value)
  }
}
