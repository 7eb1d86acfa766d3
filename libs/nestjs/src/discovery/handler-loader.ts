/** Registers methods decorated with `@Conversation`, `@OnMessage`, `@Command`, `@Hears`, `@BeforeMessage`. */
import { callsOnly, ConfigError, type Bot } from '@botmesh/core'
import type { BotRegistry } from '../bot-registry.js'
import { MetadataAccessor, type HandlerMetadata } from '../decorators/metadata.js'
import type { Found } from './provider-scan.js'

type Method = (...args: unknown[]) => unknown

export class HandlerLoader {
  constructor(private readonly registry: BotRegistry) {}

  /** @throws ConfigError: a class that is no singleton, an unknown bot. */
  load({ type, instance }: Found): void {
    const handlers = MetadataAccessor.handlers(type)
    const [first] = handlers
    if (first === undefined) return
    if (instance === null) {
      throw new ConfigError(
        `Class ${type.name} is request-scoped or transient (or injects something that is), but its method ${first.method} handles messages: handlers live in singletons.`,
        { option: type.name },
      )
    }
    const ofFlow = MetadataAccessor.flow(type)?.bot
    for (const handler of handlers) {
      const owner = `${type.name}.${handler.method}`
      for (const { bot } of this.registry.select(handler.bot ?? ofFlow, owner))
        register(bot, handler, instance)
    }
  }
}

function register(bot: Bot, handler: HandlerMetadata, instance: object): void {
  const method = () => Reflect.get(instance, handler.method) as Method
  // Looked up at each call, so that a test's spy is what runs.
  const call = callsOnly<Method>((...args) => method().apply(instance, args), method())
  switch (handler.kind) {
    case 'conversation':
      bot.conversation(handler.name, call, handler.options)
      return
    case 'command':
      bot.command(handler.name, call, handler.options)
      return
    case 'hears':
      bot.hears(handler.trigger, call)
      return
    case 'message':
      bot.onMessage(call)
      return
    case 'before':
      bot.before('message', call)
      return
  }
}
