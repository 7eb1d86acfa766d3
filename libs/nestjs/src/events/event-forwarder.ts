/** Passes the bots' events on to `@OnEvent` listeners, where the application has `@nestjs/event-emitter` (N3). */
import { Inject, Injectable } from '@nestjs/common'
import { DiscoveryService } from '@nestjs/core'
import type { BotEvents } from '@botmesh/core'
import type { RegisteredBot } from '../bot-registry.js'

/** The part of EventEmitter2 that is used; its own types may not be installed. */
interface Emitter {
  emit(event: string, payload: unknown): unknown
  listenerCount(event: string): number
}

/** Complete by its type. */
const EVENTS: Record<keyof BotEvents, true> = {
  'coordination:leader': true,
  'coordination:follower': true,
  'coordination:lease-lost': true,
  'coordination:handover': true,
  'provider:pairing': true,
  'provider:state': true,
  'message:handled': true,
  'task:missed': true,
  error: true,
}

@Injectable()
export class EventForwarder {
  private emitter: Emitter | null | undefined

  constructor(@Inject(DiscoveryService) private readonly discovery: DiscoveryService) {}

  forward(registered: RegisteredBot): void {
    if (this.emitter === undefined) this.emitter = this.find()
    const { emitter } = this
    if (emitter === null) return
    for (const event of Object.keys(EVENTS) as (keyof BotEvents)[]) {
      registered.bot.on(event, (payload) => {
        // EventEmitter2 throws for an `error` that nobody listens to; such a one is logged instead.
        if (event === 'error' && emitter.listenerCount('error') === 0) logUnheard(registered, payload)
        else emit(emitter, event, payload, registered)
      })
    }
  }

  /**
   * The application's own, known by what it can do: importing the optional package to compare classes would trip
   * bundlers, and miss it where two copies are installed.
   */
  private find(): Emitter | null {
    for (const { token, instance } of this.discovery.getProviders()) {
      if (typeof token === 'function' && isEventEmitter2(instance)) return instance
    }
    return null
  }
}

function isEventEmitter2(value: unknown): value is Emitter {
  if (typeof value !== 'object' || value === null) return false
  return ['emit', 'listenerCount', 'onAny', 'prependAny'].every(
    (method) => typeof Reflect.get(value, method) === 'function',
  )
}

function emit(emitter: Emitter, event: string, payload: unknown, { logger, name }: RegisteredBot): void {
  try {
    emitter.emit(event, payload)
  } catch (error) {
    logger.error({ bot: name, event, err: error }, 'a listener of a forwarded event threw')
  }
}

/** The bot logs an error that nobody listens to; this forwarder counts as a listener, so it does it itself. */
function logUnheard({ bot, logger, name }: RegisteredBot, payload: object): void {
  if (bot.listenerCount('error') > 1) return
  const { error } = payload as BotEvents['error']
  logger.error({ bot: name, err: error }, 'the bot met an error; nobody listens to its "error" event')
}
