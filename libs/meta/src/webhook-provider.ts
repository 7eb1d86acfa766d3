/**
 * What WhatsApp, Messenger and Instagram have in common as transports: the life cycle of something that is called
 * and holds no connection, the webhook's handshake and signature, ordered hand-over, sends of several parts.
 * Not exclusive: every replica receives what the balancer gives it (P2).
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
  SendError,
  systemClock,
  webhookAnswer,
  type Clock,
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

/** What every webhook of Meta may hold, whatever the messenger. */
export type CommonEvent =
  | { kind: 'message'; message: Message }
  /** The platform tells about trouble with the account. */
  | { kind: 'problem'; code: number | string; title: string }
  | { kind: 'ignored'; reason: string }

export interface WebhookSettings {
  id: string
  appSecret: string
  verifyToken: string
  maxBodyBytes: number
}

interface Run {
  sink: ProviderSink
  signal: AbortSignal
  onAbort: () => void
}

export abstract class WebhookProvider<Note extends { kind: string }> implements Provider {
  readonly id: string
  abstract readonly capabilities: ProviderCapabilities
  private run: Run | undefined
  private current: ProviderState = { status: 'closed', reason: 'not started' }

  constructor(
    private readonly webhook: WebhookSettings,
    /** The messenger's name, for errors. */
    private readonly platformName: string,
  ) {
    this.id = webhook.id
  }

  abstract send(to: SendTarget, content: OutgoingContent, options?: SendOptions): Promise<Sent>
  /** Events of one body, in the platform's order. Pure, never throws. */
  protected abstract parse(body: unknown): (CommonEvent | Note)[]
  /** What is neither message nor problem: logs it and tells the application. Never throws. */
  protected abstract note(event: Note, sink: ProviderSink): void

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
   * One webhook call. GET: the platform's handshake. POST: 200 once every message of the body is accepted, 503 if
   * one was not (the platform delivers the body again), 4xx for what is not from the platform (scenario 25).
   */
  async handle(request: WebhookRequest): Promise<WebhookResponse> {
    if (request.method === 'GET') return this.handshake(request)
    if (request.method !== 'POST') return webhookAnswer(405, 'use GET or POST', { allow: 'GET, POST' })
    if (request.rawBody.byteLength > this.webhook.maxBodyBytes) return webhookAnswer(413, 'body too large')
    if (!this.isSigned(request)) return webhookAnswer(401, 'signature missing or wrong')
    if (this.run === undefined) return webhookAnswer(503, 'this replica stands by')
    const json = readJsonBody(request.rawBody)
    if (!json.ok) return json.response
    return this.accept(this.parse(json.value), this.run)
  }

  /** The runtime's clock while started. */
  protected get clock(): Clock {
    return this.run?.sink.clock ?? systemClock
  }

  /**
   * Sends the parts of one message one after the other. Once a part has arrived a failure is `uncertain` whatever
   * its cause, so that what arrived is not sent again; it keeps the pause that the platform asked for.
   * @returns the platform's id of the last part. @throws SendError, the reason of `signal` if it aborts in between.
   */
  protected async sendParts<Part>(
    parts: readonly Part[],
    deliver: (part: Part) => Promise<string>,
    signal: AbortSignal | undefined,
  ): Promise<Sent> {
    let id = ''
    for (const [index, part] of parts.entries()) {
      signal?.throwIfAborted()
      try {
        id = await deliver(part)
      } catch (error) {
        if (index === 0 || !(error instanceof SendError)) throw error
        throw new SendError(
          `Only ${index} of ${parts.length} parts of the message arrived. ${error.message}`,
          { ...error.details, outcome: 'uncertain' },
          error,
        )
      }
    }
    return { id }
  }

  /** Calls back the application. Not waited for; what it throws or rejects with is reported. */
  protected tell<Value>(callback: ((value: Value) => unknown) | undefined, value: Value): void {
    const { run } = this
    const call = async () => callback?.(value)
    call().catch((thrown: unknown) => run?.sink.error(thrown))
  }

  private handshake({ query }: WebhookRequest): WebhookResponse {
    const token = query['hub.verify_token'] ?? ''
    const challenge = query['hub.challenge']
    if (query['hub.mode'] !== 'subscribe' || challenge === undefined || challenge.length > 256) {
      return webhookAnswer(400, 'not a subscription handshake')
    }
    return equalInConstantTime(token, this.webhook.verifyToken)
      ? webhookAnswer(200, challenge)
      : webhookAnswer(403, 'verify token does not match')
  }

  private isSigned(request: WebhookRequest): boolean {
    const given = headerOf(request, 'x-hub-signature-256')
    if (given === undefined) return false
    const digest = createHmac('sha256', this.webhook.appSecret).update(request.rawBody).digest('hex')
    return equalInConstantTime(given, `sha256=${digest}`)
  }

  private async accept(events: readonly (CommonEvent | Note)[], run: Run): Promise<WebhookResponse> {
    const messages: Message[] = []
    for (const event of events) {
      if (!isCommon(event)) this.note(event, run.sink)
      else if (event.kind === 'message') messages.push(event.message)
      else this.report(event, run.sink)
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

  private report(event: Exclude<CommonEvent, { kind: 'message' }>, sink: ProviderSink): void {
    const provider = this.id
    if (event.kind === 'ignored') {
      sink.logger.debug({ provider, reason: event.reason }, 'webhook event ignored')
      return
    }
    const { code, title } = event
    sink.error(
      new ProviderError(`${this.platformName} reports a problem with the account (code ${code}): ${title}`, {
        provider,
        reason: `code ${code}`,
        final: false,
      }),
    )
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

function isCommon<Note extends { kind: string }>(event: CommonEvent | Note): event is CommonEvent {
  return event.kind === 'message' || event.kind === 'problem' || event.kind === 'ignored'
}
