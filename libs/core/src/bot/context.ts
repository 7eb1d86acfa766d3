/** What handlers get (B2). */
import { ConfigError, LeaseLostError } from '../contracts/errors.js'
import type { HookResults } from '../contracts/checkpoint-store.js'
import type { Logger } from '../contracts/logger.js'
import type { Message, MessageType, Outgoing, Sent } from '../contracts/message.js'
import type { TurnScope } from '../conversation/port.js'
import { currentScope } from '../runtime/act-scope.js'
import { Span } from '../runtime/span.js'
import type { UserState } from './user-state.js'

/** The bot's side of a context. Not for applications. */
export interface ContextHost {
  enter(scope: TurnScope, name: string, state: Record<string, unknown> | undefined): Promise<void>
  leave(scope: TurnScope): Promise<boolean>
  /** A send of code whose span is over. */
  sendDetached(span: Span, content: Outgoing): Promise<Sent>
  userOf(span: Span): UserState | undefined
  text(id: string, lang: string | undefined, values?: Record<string, string | number>): string
  log(span: Span): Logger
}

/**
 * The message being handled and what can be done about it.
 *
 * Every action rejects with `LeaseLostError`, and has no effect, once the chat's turn is lost or its step was
 * stopped (L2, T4). Code that outlives its handler in good order (a timer of its own) may still `reply`, as
 * `bot.send` would, outside of any turn.
 */
export class MessageContext {
  /** As the transport gave it: hooks change `body`, `type` and `lang` of the context only. */
  readonly message: Message
  body: string
  type: MessageType
  /** The writer's language, if known. Hooks may set it. */
  lang: string | undefined
  /** What the command or the pattern that led here matched. */
  match: RegExpMatchArray | null = null
  /** Of a command: what follows its name. */
  args = ''

  /** Contexts are made by the bot. */
  constructor(
    private readonly span: Span,
    private readonly host: ContextHost,
    message: Message,
    hooks: HookResults | undefined,
  ) {
    this.message = message
    this.body = hooks?.body ?? message.body
    this.type = hooks?.type ?? message.type
    this.lang = hooks?.lang ?? message.lang
  }

  get chatId(): string {
    return this.message.chatId
  }
  get from(): string {
    return this.message.from
  }
  get isGroup(): boolean {
    return this.message.isGroup
  }
  /** The chat key: `<provider.id>/<chatId>[/<participant>]`. */
  get key(): string {
    return this.span.key
  }
  /**
   * State kept in the store for the writer of this message: plain JSON, changed in place, written before the turn
   * ends. Merged field by field with what another chat of the same user wrote meanwhile.
   * @throws ConfigError if the bot did not see at start that it is used (see `BotConfig.userState`).
   */
  get user(): Record<string, unknown> {
    const state = this.host.userOf(this.present())
    if (state !== undefined) return state.data
    throw new ConfigError(
      "ctx.user was not loaded: no handler seems to use it. Set BotConfig.userState to 'always'.",
      { option: 'userState' },
    )
  }
  /** Aborts when the turn is lost. The reason is the `LeaseLostError`. */
  get signal(): AbortSignal {
    return this.present().signal
  }
  /** Fence of the turn; null without coordination. */
  get fence(): number | null {
    return this.present().fence
  }
  /** Incarnation that held this chat before; null if unknown or without coordination. */
  get previousHolder(): string | null {
    return this.present().previousHolder
  }
  /** The bot's logger, with this chat and turn in every line. */
  get log(): Logger {
    return this.host.log(this.present())
  }

  /** Sends to this chat. @throws LeaseLostError, ProviderNotLeaderError, SendError */
  async reply(content: Outgoing): Promise<Sent> {
    const act = currentScope()
    if (act !== undefined && act.revoked !== null) throw act.revoked
    const current = act?.current ?? null
    if (current !== null && current.key === this.key) {
      return act?.send === undefined ? current.send(content, null) : act.send(content)
    }
    return this.span.over ? this.host.sendDetached(this.span, content) : this.span.send(content, null)
  }

  /** Starts a flow or conversation in this chat, leaving the present one. @throws ConfigError for an unknown name. */
  async enter(name: string, state?: Record<string, unknown>): Promise<void> {
    await this.host.enter(this.acting(), name, state)
  }

  /** Ends the chat's conversation; false if there was none. */
  async leave(): Promise<boolean> {
    return this.host.leave(this.acting())
  }

  /** A text of the library, or of `BotConfig.texts`, in the writer's language. */
  text(id: string, values?: Record<string, string | number>): string {
    return this.host.text(id, this.lang, values)
  }

  /** The span that acts for the calling code: a conversation's changes with every message. */
  private acting(): TurnScope {
    const act = currentScope()
    if (act !== undefined && act.revoked !== null) throw act.revoked
    const scope = act?.current?.key === this.key ? act.current : this.span
    if (scope instanceof Span && scope.over) {
      throw new LeaseLostError(
        this.key,
        'settled',
        this.span.fence === null ? {} : { fence: this.span.fence },
      )
    }
    return scope
  }

  private present(): Span {
    const current = currentScope()?.current
    return current instanceof Span && current.key === this.key ? current : this.span
  }
}
