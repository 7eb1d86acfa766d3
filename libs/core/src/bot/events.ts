/**
 * The bot's events (N3). A listener can do no harm: what it throws, or rejects with, is logged. `error` never
 * throws; one that nobody listens to is logged.
 */
import type { Logger } from '../contracts/logger.js'
import { ConfigError } from '../contracts/errors.js'
import { describeValue } from '../kernel/duration.js'
import { nearestName } from '../kernel/options.js'
import type { BotEvents } from './config.js'

export type BotEvent = keyof BotEvents
export type BotListener<E extends BotEvent> = (payload: BotEvents[E]) => unknown

const EVENTS: readonly BotEvent[] = [
  'coordination:leader',
  'coordination:follower',
  'coordination:lease-lost',
  'coordination:handover',
  'provider:pairing',
  'provider:state',
  'message:handled',
  'task:missed',
  'error',
]

export class EventHub {
  private readonly listeners = new Map<BotEvent, Set<BotListener<never>>>()

  constructor(
    private readonly bot: string,
    private readonly logger: Logger,
  ) {}

  /** @throws ConfigError for an event that does not exist, with the nearest name. */
  on<E extends BotEvent>(event: E, listener: BotListener<E>): void {
    if (!EVENTS.includes(event)) {
      const near = nearestName(event, EVENTS)
      throw new ConfigError(
        `A bot has no event ${describeValue(event)}${near === undefined ? '' : `; did you mean "${near}"?`}`,
        { option: 'event', value: event, accepted: EVENTS.join(', ') },
      )
    }
    const set = this.listeners.get(event) ?? new Set()
    this.listeners.set(event, set.add(listener))
  }

  off<E extends BotEvent>(event: E, listener: BotListener<E>): void {
    this.listeners.get(event)?.delete(listener)
  }

  count(event: BotEvent): number {
    return this.listeners.get(event)?.size ?? 0
  }

  emit<E extends BotEvent>(event: E, payload: Omit<BotEvents[E], 'bot'>): void {
    const set = this.listeners.get(event) as Set<BotListener<E>> | undefined
    if (set === undefined || set.size === 0) return
    const complete = { bot: this.bot, ...payload } as BotEvents[E]
    for (const listener of [...set]) this.call(event, () => listener(complete))
  }

  error(error: unknown): void {
    if (this.count('error') > 0) this.emit('error', { error })
    else
      this.logger.error(
        { bot: this.bot, err: error },
        'the bot met an error; nobody listens to its "error" event',
      )
  }

  private call(event: BotEvent, listener: () => unknown): void {
    const complain = (error: unknown) =>
      this.logger.error({ bot: this.bot, event, err: error }, 'a listener failed')
    try {
      const result = listener()
      if (result instanceof Promise) result.catch(complain)
    } catch (error) {
      complain(error)
    }
  }
}
