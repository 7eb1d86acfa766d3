/** A session that is given updates by webhook: every replica has one (P2). */
import {
  Backoff,
  chatKeyOf,
  deliverInOrder,
  isOrderlyStop,
  pause,
  ProviderError,
  webhookAnswer,
  type WebhookResponse,
} from '@botmesh/core'
import { isAddressed, parseInbound } from './parse-inbound.js'
import { Session } from './session.js'
import { judgeConnection } from './telegram-errors.js'

export class WebhookSession extends Session {
  /** Aborts when the token was refused. */
  private readonly dismissed = new AbortController()

  /** Hands one update to the runtime. @returns 200 once it is accepted, 503 if it was not. Never rejects. */
  async accept(update: Record<string, unknown>): Promise<WebhookResponse> {
    const { settings, sink } = this.parts
    await this.namedFor(isAddressed(update))
    const event = parseInbound(update, this.context, sink.clock.now())
    if (event.kind === 'ignored') {
      sink.logger.debug({ provider: settings.id, reason: event.reason }, 'update ignored')
      return webhookAnswer(200, 'ok')
    }
    const { message, callbackId } = event
    const delivery = {
      key: chatKeyOf({ provider: settings.id, ...message }),
      run: () => sink.message(message),
    }
    const [outcome] = await deliverInOrder([delivery], this.halt)
    if (outcome?.status === 'failed') {
      sink.logger[isOrderlyStop(outcome.error) ? 'debug' : 'warn'](
        { provider: settings.id, err: outcome.error },
        'update not accepted; it will come again',
      )
    }
    if (outcome?.status !== 'accepted') return webhookAnswer(503, 'not accepted')
    if (callbackId !== undefined) void this.acknowledge(callbackId)
    return webhookAnswer(200, 'ok')
  }

  protected async live(): Promise<void> {
    const named = this.named()
    if (await this.register()) {
      this.report({ status: 'open' })
      const end = AbortSignal.any([this.halt, this.dismissed.signal])
      await new Promise<void>((resolve) => {
        if (end.aborted) resolve()
        else end.addEventListener('abort', () => resolve(), { once: true })
      })
    }
    await named
  }

  /** Where no address is registered, asking for the name is the only call that finds this out. */
  protected override tokenRefused(reason: string): void {
    if (this.refused) return
    const details = { provider: this.parts.settings.id, reason, final: true }
    this.refuse(new ProviderError(`Telegram refuses the bot: ${reason}.`, details))
    this.dismissed.abort()
  }

  /** Registers the address, if one was given. The same on every replica, so it does not matter which comes last. */
  private async register(): Promise<boolean> {
    const { client, settings, sink } = this.parts
    const { url, secret } = settings.webhook!
    const backoff = new Backoff(sink.random, 500, 30_000)
    while (!this.over) {
      if (url === null) return true
      try {
        await client.setWebhook(url, secret, this.halt)
        return true
      } catch (error) {
        if (this.over) return false
        const failure = judgeConnection(error)
        if (failure.kind === 'refused') {
          this.tokenRefused(failure.reason)
          return false
        }
        sink.logger.warn(
          { provider: settings.id, reason: failure.reason },
          'the webhook could not be registered yet',
        )
        await pause(
          sink.clock,
          failure.kind === 'slow-down' ? failure.retryAfterMs : backoff.next(),
          this.halt,
        )
      }
    }
    return false
  }
}
