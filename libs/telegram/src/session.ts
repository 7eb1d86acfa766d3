/** One start of the provider: from `begin` until it was stopped, lost the leadership, or was refused for good. */
import { TransportSession, type TransportSessionParts } from '@botmesh/core'
import type { InboundContext } from './parse-inbound.js'
import type { TelegramSettings } from './options.js'
import type { TelegramClient } from './telegram.client.js'
import { judgeConnection } from './telegram-errors.js'

/** How long `start` waits for the first answer, so that a wrong token is an error of `start`. */
const FIRST_ANSWER_MS = 2_000

export interface SessionParts extends TransportSessionParts {
  client: TelegramClient
  settings: TelegramSettings
}

export abstract class Session extends TransportSession<SessionParts> {
  protected readonly context: InboundContext

  constructor(parts: SessionParts) {
    super(parts, FIRST_ANSWER_MS)
    this.context = { botId: parts.settings.botId, edits: parts.settings.edits }
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
}
