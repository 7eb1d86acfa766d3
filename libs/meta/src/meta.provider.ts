/**
 * WhatsApp Cloud API as a transport: webhooks in, Graph API out. Not exclusive: every replica receives what the
 * balancer gives it (P2). Wiring only; parsing, rendering and calls are in their own files.
 */
import { createHmac } from 'node:crypto'
import {
  chatKeyOf,
  deliverInOrder,
  equalInConstantTime,
  headerOf,
  isOrderlyStop,
  ProviderError,
  readJsonBody,
  systemClock,
  webhookAnswer,
  type Message,
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
import { MetaClient } from './meta.client.js'
import { readOptions, type MetaOptions, type MetaSettings } from './options.js'
import { parseInbound, type MetaEvent, type MetaStatus } from './parse-inbound.js'
import { renderOutbound, renderReadMark } from './render-outbound.js'

interface Run {
  sink: ProviderSink
  signal: AbortSignal
  onAbort: () => void
}

export class MetaProvider implements Provider {
  readonly id: string
  readonly capabilities: ProviderCapabilities = {
    buttons: true,
    list: true,
    media: true,
    groups: true,
    uncertainSends: 'skip',
  }

  private readonly settings: MetaSettings
  private readonly client: MetaClient
  private run: Run | undefined
  private current: ProviderState = { status: 'closed', reason: 'not started' }

  /** @throws ConfigError */
  constructor(options: MetaOptions) {
    this.settings = readOptions(options)
    this.id = this.settings.id
    this.client = new MetaClient(this.settings)
  }

  get state(): ProviderState {
    return this.current
  }

  /** Opens at once: there is no connection to make. Starting twice without `stop` keeps the first sink. */
  async start(sink: ProviderSink, signal: AbortSignal): Promise<void> {
    if (this.run !== undefined) return
    const onAbort = () => this.close(isOrderlyStop(signal.reason) ? 'stopped' : 'leadership lost')
    this.run = { sink, signal, onAbort }
    this.become({ status: 'connecting' })
    if (signal.aborted) return this.close('leadership lost')
    signal.addEventListener('abort', onAbort, { once: true })
    this.become({ status: 'open' })
  }

  async stop(): Promise<void> {
    this.close('stopped')
  }

  /**
   * Sends one message; with `media.data` an upload comes before it. Needs no running session.
   * @throws SendError with the platform's code, and the reason of `options.signal` if it aborted beforehand.
   */
  async send(to: SendTarget, content: OutgoingContent, options: SendOptions = {}): Promise<Sent> {
    options.signal?.throwIfAborted()
    const ready = await this.withUploadedMedia(content)
    const body = renderOutbound(
      this.id,
      to,
      ready,
      options.idempotencyKey === undefined ? {} : { sendKey: options.idempotencyKey },
    )
    options.signal?.throwIfAborted()
    return { id: await this.client.send(body, this.clock) }
  }

  /** Shows the blue ticks for a message and all before it; with `typing` also that an answer is being written. */
  async markRead(messageId: string, options: { typing?: boolean } = {}): Promise<void> {
    await this.client.mark(renderReadMark(messageId, options.typing === true), this.clock)
  }

  /** Fetches a media that a message named. @param options.maxBytes default 100 MiB. @throws SendError */
  async download(
    media: { id?: string },
    options: { maxBytes?: number } = {},
  ): Promise<{ data: Uint8Array; mimeType?: string }> {
    return this.client.download(media.id ?? '', options.maxBytes ?? 100 * 1024 * 1024, this.clock)
  }

  /**
   * One webhook call. GET: the platform's handshake. POST: 200 once every message of the body is accepted, 503 if
   * one was not (the platform delivers the body again), 4xx for what is not from the platform (scenario 25).
   */
  async handle(request: WebhookRequest): Promise<WebhookResponse> {
    if (request.method === 'GET') return this.handshake(request)
    if (request.method !== 'POST') return webhookAnswer(405, 'use GET or POST', { allow: 'GET, POST' })
    if (request.rawBody.byteLength > this.settings.maxBodyBytes) return webhookAnswer(413, 'body too large')
    if (!this.isSigned(request)) return webhookAnswer(401, 'signature missing or wrong')
    if (this.run === undefined) return webhookAnswer(503, 'this replica stands by')
    const json = readJsonBody(request.rawBody)
    if (!json.ok) return json.response
    return this.accept(parseInbound(json.value, this.settings.phoneNumberId), this.run)
  }

  private handshake({ query }: WebhookRequest): WebhookResponse {
    const token = query['hub.verify_token'] ?? ''
    const challenge = query['hub.challenge']
    if (query['hub.mode'] !== 'subscribe' || challenge === undefined || challenge.length > 256) {
      return webhookAnswer(400, 'not a subscription handshake')
    }
    return equalInConstantTime(token, this.settings.verifyToken)
      ? webhookAnswer(200, challenge)
      : webhookAnswer(403, 'verify token does not match')
  }

  private isSigned(request: WebhookRequest): boolean {
    const given = headerOf(request, 'x-hub-signature-256')
    if (given === undefined) return false
    const digest = createHmac('sha256', this.settings.appSecret).update(request.rawBody).digest('hex')
    return equalInConstantTime(given, `sha256=${digest}`)
  }

  private async accept(events: readonly MetaEvent[], run: Run): Promise<WebhookResponse> {
    const messages: Message[] = []
    for (const event of events) {
      if (event.kind === 'message') messages.push(event.message)
      else this.note(event, run.sink)
    }
    const outcomes = await deliverInOrder(
      messages.map((message) => ({
        key: chatKeyOf({ provider: this.id, ...message }),
        run: () => run.sink.message(message),
      })),
      run.signal,
    )
    const failed = outcomes.find((outcome) => outcome.status === 'failed')
    if (failed !== undefined) {
      run.sink.logger[isOrderlyStop(failed.error) ? 'debug' : 'warn'](
        { provider: this.id, err: failed.error },
        'webhook not accepted; it will come again',
      )
    }
    return outcomes.every((outcome) => outcome.status === 'accepted')
      ? webhookAnswer(200, 'ok')
      : webhookAnswer(503, 'not accepted')
  }

  /** What is not a message: to the callback and the log. */
  private note(event: Exclude<MetaEvent, { kind: 'message' }>, sink: ProviderSink): void {
    const provider = this.id
    switch (event.kind) {
      case 'ignored':
        sink.logger.debug({ provider, reason: event.reason }, 'webhook event ignored')
        return
      case 'problem':
        sink.error(
          new ProviderError(
            `WhatsApp reports a problem with the account (code ${event.code}): ${event.title}`,
            {
              provider,
              reason: `code ${event.code}`,
              final: false,
            },
          ),
        )
        return
      case 'status': {
        const { messageId, status, error } = event.status
        sink.logger[status === 'failed' ? 'warn' : 'debug'](
          { provider, messageId, status, error },
          'message status',
        )
        this.tell(event.status).catch((thrown: unknown) => sink.error(thrown))
      }
    }
  }

  /** Rejects with what the application's callback throws or, though it should be none, rejects with. */
  private async tell(status: MetaStatus): Promise<void> {
    await this.settings.onStatus?.(status)
  }

  private async withUploadedMedia(content: OutgoingContent): Promise<OutgoingContent> {
    const { media } = content
    if (media?.data === undefined || media.id !== undefined || content.template !== undefined) return content
    return { ...content, media: { ...media, id: await this.client.upload(media, this.clock) } }
  }

  private get clock() {
    return this.run?.sink.clock ?? systemClock
  }

  private close(reason: string): void {
    const run = this.run
    if (run === undefined) return
    run.signal.removeEventListener('abort', run.onAbort)
    const state: ProviderState = { status: 'closed', reason }
    this.run = undefined
    this.current = state
    run.sink.state(state)
  }

  private become(state: ProviderState): void {
    this.current = state
    this.run?.sink.state(state)
  }
}
