/** Passes the bots' events on to `@OnEvent` listeners, where the application has `@nestjs/event-emitter` (N3). */
import { Inject, Injectable } from '@nestjs/common'
import { ModuleRef } from '@nestjs/core'
import type { BotEvents } from '@botmesh/core'
import type { RegisteredBot } from '../bot-registry.js'
import { EVENT_EMITTER, type EventTarget2 } from './soft-event-emitter.js'

/** Complete by its type. */
const EVENTS: Record<keyof BotEvents, true> = {
  'coordination:leader': true,
  'coordination:follower': true,
  'coordination:lease-lost': true,
  'coordination:handover': true,
  'provider:pairing': true,
  'provider:state': true,
  'message:handled': true,
  error: true,
}

@Injectable()
export class EventForwarder {
  private emitter: EventTarget2 | null | undefined

  constructor(
    @Inject(ModuleRef) private readonly modules: ModuleRef,
    @Inject(EVENT_EMITTER) private readonly token: (new () => EventTarget2) | null,
  ) {}

  forward(registered: RegisteredBot): void {
    const emitter = (this.emitter ??= this.find())
    if (emitter === null) return
    for (const event of Object.keys(EVENTS) as (keyof BotEvents)[]) {
      registered.bot.on(event, (payload) => {
        // EventEmitter2 throws for an `error` that nobody listens to; such a one is logged instead.
        if (event === 'error' && emitter.listenerCount('error') === 0) logUnheard(registered, payload)
        else emit(emitter, event, payload, registered)
      })
    }
  }

  private find(): EventTarget2 | null {
    if (this.token === null) return null
    try {
      return this.modules.get(this.token, { strict: false })
    } catch {
      // Installed, but this application does not import EventEmitterModule.
      return null
    }
  }
}

function emit(emitter: EventTarget2, event: string, payload: unknown, { logger, name }: RegisteredBot): void {
  try {
    emitter.emit(event, payload)
  } catch (error) {
    logger.error({ bot: name, event, error }, 'a listener of a forwarded event threw')
  }
}

/** The bot logs an error that nobody listens to; this forwarder counts as a listener, so it does it itself. */
function logUnheard({ bot, logger }: RegisteredBot, payload: object): void {
  if (bot.listenerCount('error') > 1) return
  logger.error(payload, 'error')
}
