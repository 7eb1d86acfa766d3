/** Decorators of methods that handle messages (N2). Their classes are providers or controllers of any module. */
import { refuseUnknownOptions, type CommandOptions, type Trigger } from '@botmesh/core'
import { addHandler, type BotSelection, type HandlerMetadata } from './metadata.js'
import { refuseBareUse } from '../mistakes.js'
import { methodOf } from './method-of.js'

export interface HandlerOptions {
  /** The bots concerned: a name, several, or `'*'` for every one. Default: the class's `@Flow`, else the default bot. */
  bot?: BotSelection
}

export interface CommandDecoratorOptions extends CommandOptions, HandlerOptions {}

export interface ConversationDecoratorOptions extends HandlerOptions {
  /** Messages that enter it when no conversation is waiting. */
  on?: Trigger
}

/** An asynchronous conversation: `async survey(c: ConversationContext, ctx: MessageContext)`. Default name: the method's. */
export function Conversation(name?: string, options: ConversationDecoratorOptions = {}): MethodDecorator {
  refuseBareUse('Conversation', '@Conversation()', name)
  const { bot, ...rest } = options
  return handler('Conversation', { bot }, (method) => ({
    kind: 'conversation',
    name: name ?? method,
    options: rest,
  }))
}

/** Messages that nothing else has taken. */
export function OnMessage(options: HandlerOptions = {}): MethodDecorator {
  refuseBareUse('OnMessage', '@OnMessage()', options)
  return handler('OnMessage', options, () => ({ kind: 'message' }))
}

/**
 * A command, such as `/cancel`. Default name: the method's.
 * @param options.interrupt true: also while a conversation waits.
 */
export function Command(name?: string, options: CommandDecoratorOptions = {}): MethodDecorator {
  refuseBareUse('Command', "@Command('cancel')", name)
  const { bot, ...rest } = options
  return handler('Command', { bot }, (method) => ({ kind: 'command', name: name ?? method, options: rest }))
}

/** Messages equal to a text, or matching a pattern. */
export function Hears(trigger: Trigger, options: HandlerOptions = {}): MethodDecorator {
  refuseBareUse('Hears', "@Hears('hello')", trigger)
  return handler('Hears', options, () => ({ kind: 'hears', trigger }))
}

/** Runs before routing; may change `ctx.body`, `ctx.type` and `ctx.lang`. */
export function BeforeMessage(options: HandlerOptions = {}): MethodDecorator {
  refuseBareUse('BeforeMessage', '@BeforeMessage()', options)
  return handler('BeforeMessage', options, () => ({ kind: 'before' }))
}

type Kind = HandlerMetadata extends infer One
  ? One extends unknown
    ? Omit<One, 'method' | 'bot'>
    : never
  : never

/** Options other than `bot` are checked by the bot itself. @throws ConfigError for an unknown one. */
function handler(
  decorator: string,
  options: { bot?: BotSelection | undefined },
  kindOf: (method: string) => Kind,
): MethodDecorator {
  refuseUnknownOptions(`@${decorator}()`, options, ['bot'])
  return (prototype, key, descriptor) => {
    const method = methodOf(decorator, prototype, key, descriptor)
    const bot = options.bot === undefined ? {} : { bot: options.bot }
    addHandler(prototype.constructor, { ...kindOf(method), method, ...bot })
  }
}
