/**
 * A transport of one's own: text messages through a gateway that posts what comes in (JSON, with a shared secret in a
 * header) and takes what goes out by POST. Every replica receives: it declares no `exclusiveSession`.
 */
import {
  ProviderError,
  SendError,
  equalInConstantTime,
  headerOf,
  networkCodeOf,
  readJsonBody,
  wasNeverSent,
  webhookAnswer,
  type OutgoingContent,
  type Provider,
  type ProviderSink,
  type ProviderState,
  type SendOptions,
  type SendTarget,
  type Sent,
  type WebhookRequest,
  type WebhookResponse,
} from '@botmesh/core'

export interface SmsOptions {
  /** Names the account in chat keys: the same on every replica. */
  account: string
  /** Where messages are posted to. */
  gateway: string
  /** Of the webhook and of the gateway. */
  secret: string
}

const MAX_BODY_BYTES = 64 * 1024
const SEND_TIMEOUT_MS = 10_000

export class SmsProvider implements Provider {
  readonly id: string
  readonly capabilities = { buttons: false, list: false, media: false, groups: false }
  private current: ProviderState = { status: 'closed', reason: 'not started' }
  private running: { sink: ProviderSink; leave: () => void } | null = null

  constructor(private readonly options: SmsOptions) {
    this.id = `sms:${options.account}`
  }

  get state(): ProviderState {
    return this.current
  }

  async start(sink: ProviderSink, signal: AbortSignal): Promise<void> {
    if (this.running !== null || signal.aborted) return
    const end = () => void this.stop()
    signal.addEventListener('abort', end, { once: true })
    this.running = { sink, leave: () => signal.removeEventListener('abort', end) }
    this.tell({ status: 'connecting' })
    this.tell({ status: 'open' }) // Nothing to connect: the gateway calls.
  }

  async stop(): Promise<void> {
    if (this.running === null) return
    this.running.leave()
    this.tell({ status: 'closed', reason: 'stopped' })
    this.running = null
  }

  /** 200 once the bot has accepted the message; 503 if it could not, so that the gateway delivers it again. */
  async handle(request: WebhookRequest): Promise<WebhookResponse> {
    if (request.rawBody.byteLength > MAX_BODY_BYTES) return webhookAnswer(413, 'too large')
    const given = headerOf(request, 'x-secret') ?? ''
    if (!equalInConstantTime(given, this.options.secret)) return webhookAnswer(401, 'wrong secret')
    if (this.running === null) return webhookAnswer(503, 'not here')
    const json = readJsonBody(request.rawBody)
    if (!json.ok) return json.response
    const { event, id, from, text } = json.value
    if (event !== 'message' || typeof id !== 'string' || typeof from !== 'string') {
      return webhookAnswer(200, 'ignored')
    }
    const { sink } = this.running
    try {
      await sink.message({
        ...{ id, chatId: from, from, type: 'text', isGroup: false },
        body: typeof text === 'string' ? text : '',
        timestamp: sink.clock.now(),
        raw: json.value,
      })
      return webhookAnswer(200, 'accepted')
    } catch (error) {
      sink.error(error)
      return webhookAnswer(503, 'not accepted')
    }
  }

  async send(to: SendTarget, content: OutgoingContent, options: SendOptions = {}): Promise<Sent> {
    options.signal?.throwIfAborted()
    const answer = await this.post({ to: to.chatId, text: textOf(content), key: options.idempotencyKey })
    const { id } = (await answer.json()) as { id: string }
    return { id }
  }

  /** Says of every failure whether the message may have been delivered: that decides whether it is sent again. */
  private async post(body: object): Promise<Response> {
    const { gateway, secret } = this.options
    let answer: Response
    try {
      answer = await fetch(gateway, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-secret': secret },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(SEND_TIMEOUT_MS),
      })
    } catch (error) {
      const outcome = wasNeverSent(error) ? 'retryable' : 'uncertain'
      throw this.failed(outcome, networkCodeOf(error) ?? 'no answer', error)
    }
    if (answer.ok) return answer
    if (answer.status === 429) throw this.failed('retryable', 'the gateway asks to wait')
    throw this.failed(answer.status >= 500 ? 'uncertain' : 'final', `answered ${answer.status}`)
  }

  private failed(outcome: 'retryable' | 'final' | 'uncertain', why: string, cause?: unknown): SendError {
    const details = { provider: this.id, outcome }
    if (why === 'answered 401') {
      this.running?.sink.error(
        new ProviderError('The gateway refuses the secret.', {
          provider: this.id,
          reason: why,
          final: true,
        }),
      )
    }
    return new SendError(`The SMS gateway did not take the message: ${why}.`, details, cause)
  }

  private tell(state: ProviderState): void {
    this.current = state
    this.running?.sink.state(state)
  }
}

/** What a phone can show of it: buttons become numbered lines. */
function textOf(content: OutgoingContent): string {
  const lines = content.buttons?.map((button, index) => `${index + 1}. ${button.text}`) ?? []
  return [content.text ?? content.media?.url ?? '', ...lines].join('\n')
}
