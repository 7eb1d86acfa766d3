/**
 * What the code of flows and conversations gets as `c` (B3). Classes, because decorator metadata needs values; they
 * only pass calls on to the run behind them (frame.ts), so that nothing here can act after that run was revoked.
 *
 * Every action rejects with `LeaseLostError`, and has no effect, once the conversation was stopped or its turn lost
 * (T4, L2). An action that nobody awaits never becomes an unhandled rejection.
 */
import type { Duration } from '../contracts/coordinator.js'
import type { Message, Outgoing, Sent } from '../contracts/message.js'

/**
 * Where the bot registers the context that it hands to handlers, as `context` (declaration merging): this folder may
 * not import the bot's.
 */
// oxlint-disable-next-line no-empty-interface
export interface ContextRegistry {}

/** The bot's `MessageContext`. */
export type HandlerContext = ContextRegistry extends { context: infer Context } ? Context : unknown

/**
 * Judges an answer: `true` (or nothing) accepts it, a text is said before the question waits again, `false` repeats
 * the question. May be asynchronous. An exception rejects the `ask`.
 */
export type Validator = (message: Message) => Verdict | Promise<Verdict>
// oxlint-disable-next-line no-invalid-void-type
export type Verdict = boolean | string | undefined | void

export interface AskOptions {
  validate?: Validator
  /** Longest wait for each answer; then `WaitTimeoutError`. `null`: none. Default `BotConfig.conversation.timeout`. */
  timeout?: Duration | null
  /** After so many refused answers `TooManyAttemptsError`. Default: no limit. */
  maxAttempts?: number
}

/** What a step returns to leave the order of the steps. It has an effect only if it is returned. */
export class Directive {
  constructor(
    readonly kind: 'goto' | 'end',
    readonly step: string | null,
  ) {}
}

/** The run behind a context. */
export interface ContextActions {
  readonly key: string
  readonly chatId: string
  readonly state: object
  readonly stepName: string | null
  readonly signal: AbortSignal
  message(): Message
  handlerContext(): unknown
  ask(question: Outgoing, options: AskOptions | undefined): Promise<Message>
  say(content: Outgoing): Promise<Sent>
  sleep(duration: Duration): Promise<void>
  idle(duration: Duration, fn: (c: ConversationContext) => unknown): () => void
  direct(kind: 'goto' | 'end', step: string | null): Directive
}

/** `c` of an asynchronous conversation, and what steps have in common with it. */
export class ConversationContext<State extends object = Record<string, unknown>> {
  /** Not for applications: contexts are made by the engine. */
  constructor(protected readonly actions: ContextActions) {}

  /** One JSON state a run: what is stored at waits and handed over. Change it in place; keep it plain JSON (H3). */
  get state(): State {
    return this.actions.state as State
  }
  /** The chat key. */
  get key(): string {
    return this.actions.key
  }
  get chatId(): string {
    return this.actions.chatId
  }
  /** The message that came last: the one that entered the conversation, or the latest answer. */
  get message(): Message {
    return this.actions.message()
  }
  /** Language of that message, if known. */
  get lang(): string | undefined {
    return this.actions.message().lang
  }
  /** Aborts when this step is stopped: turn lost, `settleMs` exceeded, left, bot stopped. */
  get signal(): AbortSignal {
    return this.actions.signal
  }
  /** The bot's context for the message being handled: `ctx.user`, `ctx.enter`, …. */
  get ctx(): HandlerContext {
    return this.actions.handlerContext() as HandlerContext
  }

  /**
   * Says the question and waits for the chat's next message. The turn ends while it waits.
   * @returns the text of the answer.
   * @throws WaitTimeoutError, TooManyAttemptsError: uncaught, they end the conversation quietly. SendError.
   */
  ask(question: Outgoing, options?: AskOptions): Promise<string> {
    return guarded(this.actions.ask(question, options).then((message) => message.body))
  }
  /** `ask`, with the whole answer: for media and buttons. */
  askMessage(question: Outgoing, options?: AskOptions): Promise<Message> {
    return guarded(this.actions.ask(question, options))
  }
  /**
   * Sends to this chat; sends of a step keep their order. A send that came before the wait that the step is resumed
   * at is not made again: it resolves with the id `''`.
   * @throws SendError
   */
  say(content: Outgoing): Promise<Sent> {
    return guarded(this.actions.say(content))
  }
  /** Waits, holding the turn: at most `settleMs` are to be had under coordination. */
  sleep(duration: Duration): Promise<void> {
    return guarded(this.actions.sleep(duration))
  }
  /**
   * Calls `fn` under the turn each time the chat has been silent for `duration` while this step waits for an answer.
   * It may return `c.end()` or `c.goto(step)`: the waiting step is then abandoned. Ends with the step.
   * @returns what cancels it.
   */
  idle(duration: Duration, fn: (c: this) => unknown): () => void {
    return this.actions.idle(duration, fn as (c: ConversationContext) => unknown)
  }
  /** To be returned: ends the conversation. */
  end(): Directive {
    return this.actions.direct('end', null)
  }
}

/** `c` of a flow's step. */
export class StepContext<State extends object = Record<string, unknown>> extends ConversationContext<State> {
  /** Name of the present step. */
  get step(): string {
    return this.actions.stepName ?? ''
  }
  /** To be returned: goes on with that step. @throws ConfigError at once if the flow has no such step. */
  goto(step: string): Directive {
    return this.actions.direct('goto', step)
  }
}

/** Code that does not await an action must not bring the process down when it rejects. */
export function guarded<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}
