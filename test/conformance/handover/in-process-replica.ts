/** A replica in the test's own process that can die and stand still: its drivers and its clock are cut off. */
import { Bot, type BotEvents, type Clock, type Coordinator, type Store } from '@botmesh/core'
import { CallFaults, FakeProvider, PausableClock, type FakePlatform } from '@botmesh/core/testing'
import { CHAT_ID, type Replica, type ReplicaOptions } from './bed.js'

const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore }

/** What a replica works with, wrapped by its faults. */
export interface Connection {
  store: Store
  coordinator: Coordinator
  /** Cuts the connections of a dead process, as its operating system would. */
  cut?: () => Promise<void>
}

/** What a bed gives its replicas. */
export interface ReplicaHost {
  readonly clock: Clock
  readonly platform: FakePlatform
  connect(faults: CallFaults, clock: PausableClock): Connection
  /** Waits for `work` while time passes. */
  run(work: Promise<unknown>): Promise<void>
}

export class InProcessReplica implements Replica {
  readonly bot: Bot
  readonly faults: CallFaults
  readonly provider: FakeProvider
  readonly clock: PausableClock
  readonly errors: unknown[] = []
  readonly handovers: Replica['handovers'] = []
  readonly handled: BotEvents['message:handled'][] = []
  readonly lost: BotEvents['coordination:lease-lost'][] = []
  private readonly connection: Connection
  private stopped = false

  constructor(
    private readonly host: ReplicaHost,
    readonly name: string,
    { define, coordination, config, faults }: ReplicaOptions,
  ) {
    this.clock = new PausableClock(host.clock)
    this.faults = new CallFaults({ ...faults, onCrash: () => this.clock.stop() })
    this.provider = new FakeProvider({ platform: host.platform })
    this.connection = host.connect(this.faults, this.clock)
    const { store, coordinator } = this.connection
    this.bot = new Bot({
      clock: this.clock,
      name,
      logger: silent,
      ...config,
      store,
      provider: this.faults.provider(this.provider),
      coordination: { coordinator, ...coordination },
    })
    this.bot.on('error', ({ error }) => this.errors.push(error))
    this.bot.on('coordination:handover', (event) => this.handovers.push(event))
    this.bot.on('message:handled', (event) => this.handled.push(event))
    this.bot.on('coordination:lease-lost', (event) => this.lost.push(event))
    define(this.bot, name)
  }

  start(): Promise<void> {
    return this.host.run(this.bot.start())
  }

  async receive(message: Parameters<Replica['receive']>[0]): Promise<void> {
    await this.provider.receive({ chatId: CHAT_ID, ...message })
  }

  kill(): void {
    this.faults.kill()
    this.clock.stop()
  }

  freeze(): void {
    this.faults.pause()
    this.clock.pause()
  }

  thaw(): void {
    if (!this.faults.alive) return
    this.faults.resume()
    this.clock.resume()
  }

  async stop(): Promise<void> {
    this.stopped = true
    await this.host.run(this.bot.stop())
  }

  /** The end of the scenario: what is dead stays as it is. */
  async end(): Promise<void> {
    this.thaw()
    if (!this.stopped && this.faults.alive) await this.stop()
    await this.connection.cut?.()
  }
}

function ignore(): void {}
