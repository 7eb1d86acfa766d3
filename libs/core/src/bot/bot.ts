/** The public face of a bot (B2). Wiring only: messages are handled in runtime/, answered in router.ts. */
import type { Coordinator, Duration } from '../contracts/coordinator.js'
import type { Outgoing, Sent } from '../contracts/message.js'
import type { Provider, WebhookRequest, WebhookResponse } from '../contracts/provider.js'
import type { Store } from '../contracts/store.js'
import {
  FlowRegistry,
  type ConversationContext,
  type ConversationDefinition,
  type FlowBuilder,
  type FlowDefinition,
} from '../conversation/index.js'
import { parseDuration } from '../kernel/duration.js'
import { MemoryStore } from '../memory/index.js'
import { currentScope, guardOf } from '../runtime/act-scope.js'
import { webhookAnswer } from '../runtime/webhook-request.js'
import { cron, interval } from '../scheduler/occurrences.js'
import type { BotConfig } from './config.js'
import type { MessageContext } from './context.js'
import { EventHub, type BotEvent, type BotListener } from './events.js'
import type {
  BotHealth,
  BotStatus,
  CommandOptions,
  DeadLetters,
  FlowOptions,
  MessageHandler,
  MessageHook,
  Recipient,
  Task,
  TaskHandler,
  TaskOptions,
  Trigger,
} from './face.js'
import { JournalDeadLetters } from './dead-letters.js'
import { healthOf } from './health.js'
import {
  noteDrained,
  noteDraining,
  noteNeverStarted,
  noteServing,
  notRunning,
  stoppedAtStart,
} from './life-notes.js'
import { resolveOptions, type ResolvedOptions } from './options.js'
import { Readiness } from './readiness.js'
import { Router } from './router.js'
import { RunningBot } from './running-bot.js'
import { TaskList } from './task-list.js'
import { UserUse } from './uses-user.js'

export class Bot {
  readonly config: BotConfig
  /** Messages given up after their last attempt (D3). */
  readonly deadLetters: DeadLetters
  private readonly options: ResolvedOptions
  private readonly events: EventHub
  private readonly registry = new FlowRegistry()
  private readonly router = new Router()
  private readonly userUse = new UserUse()
  private readonly tasks: TaskList
  private readonly readiness = new Readiness()
  private running: RunningBot | null = null
  private status: BotStatus = 'idle'
  private starting: Promise<void> | null = null
  /** Of the last start: a stop aborts it. */
  private attempt = new AbortController()
  private stopping: Promise<void> | null = null

  /** @throws ConfigError that names the option, the value given and what is accepted. */
  constructor(config: BotConfig) {
    this.options = resolveOptions(config, () => new MemoryStore())
    this.config = config
    const { name, logger, store } = this.options
    this.events = new EventHub(name, logger)
    this.tasks = new TaskList(this.options, this.events)
    this.deadLetters = new JournalDeadLetters(store, (key) => this.running?.inbox.wake(key))
  }

  get name(): string {
    return this.options.name
  }
  get provider(): Provider {
    return this.options.provider
  }
  get store(): Store {
    return this.options.store
  }
  get coordinator(): Coordinator | null {
    return this.options.coordinator
  }

  /**
   * Resolves when this replica's transport is connected; pending on a standby (P4), and anew after a leadership was
   * lost. Rejects only when the bot stops, and never as an unhandled rejection.
   */
  get ready(): Promise<void> {
    return this.readiness.promise
  }

  /**
   * Freezes all definitions, connects store, coordinator and transport, and begins to take messages. On a standby it
   * resolves too. Idempotent.
   * @throws ConfigError for what can never work; CoordinationUnavailableError if the backend stays unreachable, or
   * (`stopped`) at once if the bot is stopped before it has started.
   */
  start(): Promise<void> {
    if (this.status === 'starting' || this.status === 'running') return this.starting ?? Promise.resolve()
    this.status = 'starting'
    this.attempt = new AbortController()
    this.starting = this.begin(this.attempt.signal)
    return this.starting
  }

  /**
   * Takes no more messages, lets what runs finish or suspends it, disconnects, resigns and releases, within
   * `drainMs`. The next replica takes over at once. A start under way is given up at once. Idempotent; never rejects.
   */
  stop(): Promise<void> {
    if (this.status === 'idle' || this.status === 'stopped') {
      this.readiness.end()
      return this.stopping ?? Promise.resolve()
    }
    if (this.status === 'stopping' && this.stopping !== null) return this.stopping
    this.stopping = this.end()
    return this.stopping
  }

  /** A snapshot for health checks (N4). No I/O. */
  health(): BotHealth {
    return healthOf(this.options, this.status, this.running)
  }

  /** Writes to a chat. Called by a handler or a step it is one of its effects: it rejects with `LeaseLostError` once
   * that turn is lost, and with durability it is not made twice. A durable task's rejects once that may not act (J1).
   * @throws ProviderNotLeaderError on a standby (P4), SendError, LeaseLostError, CoordinationUnavailableError */
  async send(to: Recipient, message: Outgoing): Promise<Sent> {
    const act = currentScope()
    const guard = guardOf(act)
    guard.assertLive()
    const { running } = this
    if (running === null) throw notRunning(this.name, this.status)
    const target = typeof to === 'string' ? { chatId: to } : to
    const current = act?.current ?? null
    if (running.owns(current)) return current.sendTo(target, message, null)
    // A handler of another bot: its turn decides whether it may act, this bot's transport sends.
    current?.assertLive()
    return running.gate.deliver(target, typeof message === 'string' ? { text: message } : message, guard)
  }

  /** Hands a webhook call to the transport. Never throws. 503 with Retry-After where this replica cannot take it now
   * (before start, while it stops, on a standby: P1), 404 if the transport has no webhook. */
  async handleWebhook(request: WebhookRequest): Promise<WebhookResponse> {
    const { provider } = this.options
    if (provider.handle === undefined) return webhookAnswer(404, 'no webhook here')
    if (this.status !== 'running') return webhookAnswer(503, 'not running')
    if (this.running?.session.maySend !== true) return webhookAnswer(503, 'standing by')
    try {
      return await provider.handle(request)
    } catch (error) {
      this.events.error(error)
      return webhookAnswer(500, 'failed')
    }
  }

  /** Listeners can do no harm: what they throw is logged. @throws ConfigError for no event. */
  on<E extends BotEvent>(event: E, listener: BotListener<E>): this {
    this.events.on(event, listener)
    return this
  }
  off<E extends BotEvent>(event: E, listener: BotListener<E>): this {
    this.events.off(event, listener)
    return this
  }
  listenerCount(event: BotEvent): number {
    return this.events.count(event)
  }

  /** Declares a flow: named steps over one JSON state (B3). @throws ConfigError after start. */
  flow<S extends object = Record<string, unknown>>(name: string, options: FlowOptions = {}): FlowBuilder<S> {
    const builder = this.registry.flow<S>(name, options)
    this.userUse.addFlow(() => builder.definition().steps)
    return builder
  }

  /** Declares an asynchronous conversation: a function that can ask. */
  conversation<S extends object = Record<string, unknown>>(
    name: string,
    run: (c: ConversationContext<S>, ctx: MessageContext) => unknown,
    options: { on?: Trigger } = {},
  ): this {
    this.registry.conversation<S>(name, run, options)
    this.userUse.add(run)
    return this
  }

  /** Declares a flow or conversation given as an object (`defineFlow`). */
  define<S extends object>(definition: FlowDefinition<S> | ConversationDefinition<S>): this {
    this.registry.add(definition)
    this.userUse.addFlow(() => ('run' in definition ? [definition] : definition.steps))
    return this
  }

  /**
   * `/name` (also `/name@bot`, and with words after it, `ctx.args`), or the bare name as the whole message. With
   * `interrupt` also in the middle of a conversation, before it sees the message.
   */
  command(name: string, handler: MessageHandler, options?: CommandOptions): this {
    this.router.command(name, handler, options)
    return this
  }

  /** Messages that no conversation and no command took: a text (the whole message) or a pattern. First one wins. */
  hears(trigger: Trigger, handler: MessageHandler): this {
    this.router.hears(trigger, handler)
    return this
  }

  /** What nobody else took. Several are run in the order declared. */
  onMessage(handler: MessageHandler): this {
    this.router.onMessage(handler)
    return this
  }

  /** Runs before routing; may change `ctx.body`, `ctx.type` and `ctx.lang`. Returning `false` drops the message. */
  before(event: 'message', hook: MessageHook): this {
    this.router.before(event, hook)
    return this
  }

  /** A task, each interval from start to stop; it never overlaps itself. With `id` and `scheduler`: durable, each
   * occurrence on one replica at a time (J1); else on every replica (J2). @throws ConfigError */
  every(every: Duration, fn: TaskHandler): Task
  every(every: Duration, options: TaskOptions, fn: TaskHandler): Task
  every(every: Duration, options: TaskOptions | TaskHandler, fn?: TaskHandler): Task {
    return this.tasks.add(interval(parseDuration('every', every, { minMs: 1 })), options, fn)
  }

  /** The same at each occurrence of a cron expression. @throws ConfigError */
  schedule(expression: string, fn: TaskHandler): Task
  schedule(expression: string, options: TaskOptions, fn: TaskHandler): Task
  schedule(expression: string, options: TaskOptions | TaskHandler, fn?: TaskHandler): Task {
    const timeZone = typeof options === 'function' ? undefined : options.timeZone
    return this.tasks.add(cron(expression, timeZone), options, fn)
  }

  private async begin(signal: AbortSignal): Promise<void> {
    const { options, registry, router, events } = this
    let running: RunningBot | null = null
    try {
      if (this.stopping !== null) await this.stopping
      signal.throwIfAborted()
      registry.freeze()
      router.freeze()
      const converses = this.userUse.flows > 0
      const usesUser = options.userState === 'always' || this.userUse.found(router, options)
      running = new RunningBot(options, { registry, router, converses, usesUser }, events, () =>
        this.readiness.follow(this.running?.session),
      )
      this.running = running
      this.readiness.begin(() => noteServing(options))
      await running.start(signal, ({ session }) => {
        this.status = 'running'
        this.tasks.start()
        this.readiness.follow(session)
      })
    } catch (error) {
      if (this.status === 'running') await this.tasks.stop()
      if (this.running === running) this.running = null
      if (!signal.aborted) this.status = 'idle'
      throw error
    }
  }

  private async end(): Promise<void> {
    const { options, running } = this
    const starting = this.status === 'starting' ? this.starting : null
    this.status = 'stopping'
    const since = options.clock.monotonic()
    if (starting !== null) {
      this.attempt.abort(stoppedAtStart(options.name))
      // It undoes what it has begun, within `drainMs` as any stop.
      await starting.catch(() => undefined)
      noteNeverStarted(options, since)
    } else if (running !== null) {
      noteDraining(options, running.inbox.inFlight)
      noteDrained(options, await running.stop(this.tasks.stop()), since)
    }
    this.running = null
    // A start may wait for this to be over.
    if (this.status === 'stopping') this.status = 'stopped'
    this.readiness.end()
  }
}
