/** The public face of a bot (B2). Wiring only. */
import type { Duration } from '../contracts/coordinator.js'
import type { Outgoing, Sent } from '../contracts/message.js'
import type { Provider, WebhookRequest, WebhookResponse } from '../contracts/provider.js'
import type { Store } from '../contracts/store.js'
import type { BotConfig, BotEvents } from './config.js'
import type {
  BotHealth,
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

/** Being built: signatures first, so that others can compile against them. */
export class Bot {
  readonly config: BotConfig
  readonly ready: Promise<void> = Promise.reject(new Error('not built yet'))

  constructor(config: BotConfig) {
    this.config = config
    this.ready.catch(() => undefined)
  }

  get name(): string {
    return this.config.name ?? 'default'
  }
  get provider(): Provider {
    return this.config.provider
  }
  get store(): Store {
    throw new Error('not built yet')
  }
  get deadLetters(): DeadLetters {
    throw new Error('not built yet')
  }

  start(): Promise<void> {
    return Promise.reject(new Error('not built yet'))
  }
  stop(): Promise<void> {
    return Promise.reject(new Error('not built yet'))
  }
  health(): BotHealth {
    throw new Error('not built yet')
  }
  send(_to: Recipient, _message: Outgoing): Promise<Sent> {
    return Promise.reject(new Error('not built yet'))
  }
  handleWebhook(_request: WebhookRequest): Promise<WebhookResponse> {
    return Promise.reject(new Error('not built yet'))
  }
  on<E extends keyof BotEvents>(_event: E, _listener: (payload: BotEvents[E]) => unknown): this {
    return this
  }
  off<E extends keyof BotEvents>(_event: E, _listener: (payload: BotEvents[E]) => unknown): this {
    return this
  }
  listenerCount(_event: keyof BotEvents): number {
    return 0
  }

  // The flow builder and the contexts of steps come from conversation/; `any` until they have landed.
  flow<S extends object = Record<string, unknown>>(
    _name: string,
    _options?: FlowOptions,
    _state?: S,
  ): // oxlint-disable-next-line no-explicit-any
  any {
    throw new Error('not built yet')
  }
  // oxlint-disable-next-line no-explicit-any
  conversation(_name: string, _run: (c: any, ctx: any) => unknown): this {
    return this
  }
  command(_name: string, _handler: MessageHandler, _options?: CommandOptions): this {
    return this
  }
  hears(_trigger: Trigger, _handler: MessageHandler): this {
    return this
  }
  onMessage(_handler: MessageHandler): this {
    return this
  }
  before(_event: 'message', _hook: MessageHook): this {
    return this
  }
  every(interval: Duration, fn: TaskHandler): Task
  every(interval: Duration, options: TaskOptions, fn: TaskHandler): Task
  every(_interval: Duration, _options: TaskOptions | TaskHandler, _fn?: TaskHandler): Task {
    throw new Error('not built yet')
  }
  schedule(cron: string, fn: TaskHandler): Task
  schedule(cron: string, options: TaskOptions, fn: TaskHandler): Task
  schedule(_cron: string, _options: TaskOptions | TaskHandler, _fn?: TaskHandler): Task {
    throw new Error('not built yet')
  }
}
