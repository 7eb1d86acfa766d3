/**
 * What one wants to see of a mesh: who handled which message of which chat under which fence, who had the chat
 * before, and when a conversation moved.
 */
import { Inject, Injectable } from '@nestjs/common'
import { OnEvent } from '@nestjs/event-emitter'
import type { BotEvents } from '@botmesh/core'
import type { Logger } from 'pino'
import { PINO } from './pino-logger.js'

@Injectable()
export class ChatLog {
  constructor(@Inject(PINO) private readonly log: Logger) {}

  @OnEvent('message:handled')
  handled({ bot, key, message, fence, previousHolder, seq }: BotEvents['message:handled']) {
    this.log.info(
      { event: 'handled', bot, chat: key, messageId: message.id, fence, previousHolder, seq },
      'message handled',
    )
  }

  @OnEvent('coordination:handover')
  handedOver({ bot, key, name, outcome, reason }: BotEvents['coordination:handover']) {
    this.log.info(
      { event: 'handover', bot, chat: key, conversation: name, outcome, reason },
      'conversation taken over',
    )
  }

  @OnEvent('coordination:lease-lost')
  lost({ bot, key, reason }: BotEvents['coordination:lease-lost']) {
    this.log.warn({ event: 'lease-lost', bot, key, reason }, 'turn lost')
  }

  @OnEvent('error')
  failed({ bot, error }: BotEvents['error']) {
    this.log.error({ event: 'error', bot, err: error }, 'something failed')
  }
}
