/** One start of the provider: from `begin` until it was stopped, lost the leadership, or was refused for good. */
import { TransportSession, within, type TransportSessionParts } from '@botmesh/core'
import type { InboundContext } from './parse-inbound.js'
import type { TelegramSettings } from './options.js'
import type { TelegramClient } from './telegram.client.js'
import { judgeConnection } from './telegram-errors.js'

/** How long `start` waits for the first answer, so that a wrong token is an error of `start`. */
const FIRST_ANSWER_MS = 2_000
const NAME_RETRY_MS = 30_000
/** How long a command with an addressee, and in polling what came with it, waits for an answer about the name. */
const NAME_WAIT_MS = 3_000

export interface SessionParts extends TransportSessionParts {
  client: TelegramClient
  settings: TelegramSettings
}

export abstract class Session extends TransportSession<SessionParts> {
  protected readonly context: InboundContext
  private nameAsked: Promise<void> | undefined
  private nameAwaited: Promise<unknown> | undefined
  private askNameAtMs = -Infinity

  constructor(parts: SessionParts) {
    super(parts, FIRST_ANSWER_MS)
    this.context = { botId: parts.settings.botId, edits: parts.settings.edits }
  }

  /**
   * Settles once the bot's name was asked for, known or not. Where the question failed, later calls ask again, and wait
   * for nothing. Never rejects.
   */
  protected named(): Promise<void> {
    if (this.context.username === undefined && this.sink.clock.monotonic() >= this.askNameAtMs) {
      const asked = this.askName()
      this.nameAsked ??= asked
    }
    return this.nameAsked ?? Promise.resolve()
  }

  /**
   * Before what came is parsed. What has an addressee waits for the name, once and no longer than `NAME_WAIT_MS`: while
   * it is not known, commands for other bots of a group are taken for ours. Never rejects.
   */
  protected async namedFor(addressed: boolean): Promise<void> {
    const named = this.named()
    if (addressed) await (this.nameAwaited ??= within(this.sink.clock, NAME_WAIT_MS, named))
  }

  /** Telegram does not know the token. Polling learns that from its polls too. */
  protected tokenRefused(_reason: string): void {}

  private async askName(): Promise<void> {
    this.askNameAtMs = Infinity
    try {
      this.context.username = await this.parts.client.username(this.halt)
    } catch (error) {
      if (this.halt.aborted) return
      this.askNameAtMs = this.sink.clock.monotonic() + NAME_RETRY_MS
      const failure = judgeConnection(error)
      this.sink.logger.debug(
        { provider: this.parts.settings.id, reason: failure.reason },
        'the name of the bot is not known yet',
      )
      if (failure.kind === 'refused') this.tokenRefused(failure.reason)
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
}
