/** What the bot does with a message under its turn: `ctx.user`, hooks, routing; and what contexts act through. */
import { encodedPart } from '../kernel/chat-key.js'
import type { Logger } from '../contracts/logger.js'
import type { HookResults } from '../contracts/checkpoint-store.js'
import type { Message, Outgoing, Sent } from '../contracts/message.js'
import type { Store } from '../contracts/store.js'
import type { ConversationEngine, TurnScope, Unclaimed } from '../conversation/port.js'
import { silentMessage } from '../conversation/timeouts.js'
import { runInScope } from '../runtime/act-scope.js'
import type { SendGate } from '../runtime/send-gate.js'
import type { Span } from '../runtime/span.js'
import type { SpanHandler } from '../runtime/turn-runner.js'
import { MessageContext, type ContextHost } from './context.js'
import type { EventHub } from './events.js'
import type { Route, Router } from './router.js'
import type { TextCatalogue } from './texts.js'
import { UserState } from './user-state.js'

export interface DispatcherOptions {
  bot: string
  provider: string
  store: Store
  router: Router
  engine: ConversationEngine
  gate: SendGate
  events: EventHub
  texts: TextCatalogue
  logger: Logger
  now(): number
  /** The bot has flows or conversations. */
  converses: boolean
  usesUser: boolean
}

export class Dispatcher implements SpanHandler, ContextHost {
  private readonly users = new WeakMap<Span, UserState>()

  constructor(private readonly options: DispatcherOptions) {}

  prepare(span: Span): Promise<void> | undefined {
    return this.options.usesUser ? this.loadUser(span) : undefined
  }

  async handle(span: Span): Promise<void> {
    const ctx = this.contextOf(span)
    const { router, engine, converses } = this.options
    if (router.hooks.length > 0 && !(await this.runHooks(span, ctx))) return
    const message = span.hooks === undefined ? ctx.message : { ...ctx.message, ...span.hooks }
    const interrupting = router.interruptFor(message)
    if (interrupting !== null) return this.follow(interrupting, ctx)
    if (converses && this.mayConverse(span) && (await engine.accept(span))) {
      span.touched = true
      return
    }
    return this.route(span, ctx, message)
  }

  /** A message that a conversation was given and ended without using (H7). Its code acts as the span's handlers do. */
  unclaimed(span: Span, answer: Unclaimed): Promise<void> {
    const { original, hooks } = answer
    const message = hooks === undefined ? original : { ...original, ...hooks }
    return runInScope(span.act, () => this.route(span, this.contextFor(span, answer), message))
  }

  /** The context of a message that is worked on under another one's span: of the same person, since in groups the key is
   * per participant (B4). */
  contextFor(span: Span, answer: Unclaimed | null | undefined): MessageContext {
    if (answer === null || answer === undefined || span.message === null) return this.contextOf(span)
    const { original, hooks } = answer
    return original.id === span.message.id
      ? this.contextOf(span)
      : new MessageContext(span, this, original, hooks)
  }

  /** What no conversation claims. */
  private async route(span: Span, ctx: MessageContext, message: Message): Promise<void> {
    const { router, engine, converses } = this.options
    const command = router.commandFor(message)
    if (command !== null) return this.follow(command, ctx)
    const flow = converses ? engine.triggeredBy(message) : null
    if (flow !== null) return this.enter(span, flow, undefined)
    const hearing = router.hearingFor(message)
    if (hearing !== null) return this.follow(hearing, ctx)
    for (const handler of router.handlers) await handler(ctx)
  }

  save(span: Span): Promise<void> | undefined {
    return this.users.get(span)?.save()
  }

  handled(span: Span): void {
    const { events } = this.options
    if (span.message === null || events.count('message:handled') === 0) return
    const { key, message, fence, previousHolder } = span
    events.emit('message:handled', { key, message, fence, previousHolder, seq: span.record?.seq ?? null })
  }

  /** The context of a span, made once. A timer's has a message without content. */
  contextOf(span: Span): MessageContext {
    if (span.context instanceof MessageContext) return span.context
    const context = new MessageContext(span, this, span.message ?? this.silence(span), span.hooks)
    span.context = context
    return context
  }

  async enter(scope: TurnScope, name: string, state: Record<string, unknown> | undefined): Promise<void> {
    ;(scope as Span).touched = true
    await this.options.engine.enter(scope, name, state)
  }

  leave(scope: TurnScope): Promise<boolean> {
    ;(scope as Span).touched = true
    return this.options.engine.leave(scope)
  }

  sendDetached(span: Span, content: Outgoing): Promise<Sent> {
    return this.options.gate.deliver(span.target, typeof content === 'string' ? { text: content } : content)
  }

  userOf(span: Span): UserState | undefined {
    return this.users.get(span)
  }

  text(id: string, lang: string | undefined, values?: Record<string, string | number>): string {
    return this.options.texts.find(id, lang, values)
  }

  log(span: Span): Logger {
    const { logger, bot } = this.options
    const { key, fence, previousHolder } = span
    const particulars = { bot, chat: key, ...(fence === null ? {} : { fence, previousHolder }) }
    const bound =
      (level: keyof Logger): Logger[keyof Logger] =>
      (details, message) =>
        logger[level]({ ...particulars, ...details }, message)
    return { debug: bound('debug'), info: bound('info'), warn: bound('warn'), error: bound('error') }
  }

  private async follow(route: Route, ctx: MessageContext): Promise<void> {
    ctx.match = route.match
    ctx.args = route.args
    await route.handler(ctx)
  }

  /** False if a hook returned `false`: the message is dropped. */
  private async runHooks(span: Span, ctx: MessageContext): Promise<boolean> {
    for (const hook of this.options.router.hooks) if ((await hook(ctx)) === false) return false
    const results: HookResults = {}
    if (ctx.body !== ctx.message.body) results.body = ctx.body
    if (ctx.type !== ctx.message.type) results.type = ctx.type
    if (ctx.lang !== undefined && ctx.lang !== ctx.message.lang) results.lang = ctx.lang
    if (Object.keys(results).length > 0) span.hooks = results
    return true
  }

  private mayConverse(span: Span): boolean {
    return (
      span.coordinated ||
      span.state !== undefined ||
      this.options.engine.localRevision(span.key) !== undefined
    )
  }

  private async loadUser(span: Span): Promise<void> {
    const { store, provider } = this.options
    const from = span.message?.from ?? span.target.participant ?? span.target.chatId
    const userId = userIdOf(provider, from)
    const brought = span.state?.user
    const state =
      brought === undefined
        ? await UserState.load(store, store.kind, userId)
        : UserState.of(store, store.kind, userId, brought)
    this.users.set(span, state)
  }

  private silence(span: Span): Message {
    return silentMessage(span.target, this.options.now())
  }
}

/** One account's users: `<provider.id>/<from>`, percent-encoded as in chat keys. */
export function userIdOf(provider: string, from: string): string {
  return `${encodedPart(provider)}/${encodedPart(from)}`
}
