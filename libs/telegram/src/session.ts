/** One start of the provider: from `begin` until it was stopped, lost the leadership, or was refused for good. */
import { isOrderlyStop, type ProviderSink, type ProviderState } from '@botmesh/core'
import type { InboundContext } from './parse-inbound.js'
import { pause } from './pause.js'
import type { TelegramSettings } from './options.js'
import type { TelegramClient } from './telegram.client.js'
import { judgeConnection } from './telegram-errors.js'

/** How long `start` waits for the first answer, so that a wrong token is an error of `start`. */
const FIRST_ANSWER_MS = 2_000

export interface SessionParts {
  client: TelegramClient
  settings: TelegramSettings
  sink: ProviderSink
  /** Aborts when the leadership is lost, or given up in order (then with `CoordinationUnavailableError`). */
  leadership: AbortSignal
}

export abstract class Session {
  protected readonly context: InboundContext
  protected readonly halt: AbortSignal
  private readonly stopping = new AbortController()
  private answered = () => {}
  private readonly firstAnswer = new Promise<void>((resolve) => (this.answered = resolve))
  private current: ProviderState = { status: 'closed', reason: 'not started' }
  private life: Promise<void> | undefined
  private starting = true
  private refusal: Error | undefined

  constructor(protected readonly parts: SessionParts) {
    const { settings, leadership } = parts
    this.context = { botId: settings.botId, edits: settings.edits }
    this.halt = AbortSignal.any([leadership, this.stopping.signal])
  }

  get state(): ProviderState {
    return this.current
  }

  get sink(): ProviderSink {
    return this.parts.sink
  }

  /** True once it neither lives nor will. */
  get over(): boolean {
    return this.halt.aborted || this.refusal !== undefined
  }

  /** Settles when nothing of it runs any more. */
  get ended(): Promise<void> {
    return this.life ?? Promise.resolve()
  }

  /** @throws ProviderError if the token is refused while it waits for the first answer (2 s at most). */
  async begin(): Promise<void> {
    this.report({ status: 'connecting' })
    this.life = this.live().then(
      () => this.close(),
      (error: unknown) => {
        // `live` handles what can be expected: this is a fault of this package, and must be seen.
        this.sink.error(error)
        this.close()
      },
    )
    const waited = new AbortController()
    await Promise.race([this.firstAnswer, this.life, pause(this.sink.clock, FIRST_ANSWER_MS, waited.signal)])
    waited.abort()
    this.starting = false
    if (this.refusal !== undefined) throw this.refusal
  }

  /** Orderly: what was accepted is confirmed to the platform. */
  async end(): Promise<void> {
    this.stopping.abort()
    await this.ended
  }

  /** Works until halted or refused. */
  protected abstract live(): Promise<void>

  protected report(state: ProviderState): void {
    if (this.halt.aborted && state.status !== 'closed') return
    this.current = state
    this.sink.state(state)
    if (state.status !== 'connecting') this.answered()
  }

  /** The token is refused: reported by `start` if it still waits, else through the sink. */
  protected refuse(error: Error): void {
    this.refusal = error
    if (!this.starting) this.sink.error(error)
  }

  /** True: somebody else may be leading already. An abort for an orderly stop says so in its reason. */
  protected get lostLeadership(): boolean {
    const { aborted, reason } = this.parts.leadership
    return aborted && !isOrderlyStop(reason)
  }

  /** Learns the bot's name, for commands in groups. Never rejects: without it they are all taken for ours. */
  protected async learnName(): Promise<void> {
    try {
      this.context.username = await this.parts.client.username(this.halt)
    } catch (error) {
      const { reason } = judgeConnection(error)
      this.sink.logger.debug(
        { provider: this.parts.settings.id, reason },
        'the name of the bot is not known yet',
      )
    }
  }

  /** Ends the spinner on the button that a user pressed. Never rejects. */
  protected async acknowledge(callbackId: string): Promise<void> {
    const { client, sink, settings } = this.parts
    try {
      await client.act({ method: 'answerCallbackQuery', payload: { callback_query_id: callbackId } })
    } catch (error) {
      sink.logger.debug({ provider: settings.id, err: error }, 'a button press could not be acknowledged')
    }
  }

  private close(): void {
    if (this.refusal !== undefined) {
      this.report({ status: 'closed', reason: this.refusal.message, final: true })
    } else {
      this.report({ status: 'closed', reason: this.lostLeadership ? 'leadership lost' : 'stopped' })
    }
  }
}
