/** Replicas of one bot in one process, on a clock that the test moves. */
import {
  Bot,
  MemoryStore,
  silentLogger,
  type BotConfig,
  type BotEvents,
  type CoordinationOptions,
} from '../../../src/index.js'
import {
  FakePlatform,
  FakeProvider,
  ManualClock,
  MemoryCoordinationHub,
  MemoryCoordinator,
  PausableClock,
} from '../../../src/testing/index.js'

export type Placement = 'shared' | 'separate'

export interface Replica {
  clock: PausableClock
  bot: Bot
  provider: FakeProvider
  coordinator: MemoryCoordinator
  errors: unknown[]
  events: { name: string; payload: Record<string, unknown> }[]
}

export interface MeshOptions {
  placement?: Placement
  leaseMs?: number
  exclusive?: boolean
  config?: Partial<BotConfig>
  coordination?: Partial<CoordinationOptions>
}

const EVENTS: (keyof BotEvents)[] = [
  'coordination:leader',
  'coordination:follower',
  'coordination:lease-lost',
  'coordination:handover',
  'message:handled',
]

export class Mesh {
  readonly clock = new ManualClock()
  readonly platform = new FakePlatform()
  readonly store = new MemoryStore({ clock: this.clock })
  readonly replicas: Replica[] = []
  private readonly hub = new MemoryCoordinationHub({ clock: this.clock })

  constructor(
    private readonly define: (bot: Bot) => void,
    private readonly options: MeshOptions = {},
  ) {}

  /** Another replica, started. */
  async add(): Promise<Replica> {
    const replica = this.prepare()
    await this.run(replica.bot.start())
    return replica
  }

  prepare(overrides: { provider?: FakeProvider } = {}): Replica {
    const { placement = 'shared', leaseMs = 15_000, exclusive = false, config, coordination } = this.options
    const provider =
      overrides.provider ??
      new FakeProvider({
        platform: this.platform,
        capabilities: { exclusiveSession: exclusive, ...config?.provider?.capabilities },
      })
    const clock = new PausableClock(this.clock)
    const coordinator =
      placement === 'shared'
        ? this.store.coordinator({ leaseMs, clock })
        : new MemoryCoordinator({ hub: this.hub, leaseMs, clock })
    const bot = new Bot({
      store: this.store,
      clock,
      name: `replica-${this.replicas.length}`,
      logger: silentLogger,
      ...config,
      provider,
      coordination: { coordinator, ...coordination },
    })
    const replica: Replica = { clock, bot, provider, coordinator, errors: [], events: [] }
    bot.on('error', ({ error }) => replica.errors.push(error))
    for (const name of EVENTS) {
      bot.on(name, (payload) => replica.events.push({ name, payload: { ...payload } }))
    }
    this.define(bot)
    this.replicas.push(replica)
    return replica
  }

  /** What was said, by all replicas, in order. */
  get said(): string[] {
    return this.platform.sent.map((send) => send.text)
  }

  /** Hands in a message and lets everything run that needs no time. */
  async tell(replica: Replica, body: string, more: { chatId?: string; id?: string } = {}): Promise<void> {
    await this.run(replica.provider.receive({ body, id: `${body}#${this.next++}`, ...more }))
    await this.settle()
  }
  private next = 0

  async settle(): Promise<void> {
    for (let i = 0; i < 5; i++) await this.clock.settle()
  }

  /** Waits for `work`, letting timers fire as they are needed. */
  async run<T>(work: Promise<T>): Promise<T> {
    let done = false
    const watched = work.finally(() => (done = true))
    watched.catch(() => undefined)
    await this.clock.advanceUntil(() => done)
    return watched
  }

  async until(condition: () => boolean, limitMs?: number): Promise<void> {
    await this.clock.advanceUntil(condition, limitMs)
  }

  async stop(): Promise<void> {
    for (const { bot } of this.replicas) await this.run(bot.stop())
  }

  payloads(replica: Replica, name: keyof BotEvents): Record<string, unknown>[] {
    return replica.events.filter((event) => event.name === name).map(({ payload }) => payload)
  }
}
