/** Providers against one double of Discord, and what their runtime's side has seen of them. */
import { MemoryLog, systemClock, type Clock, type MessageLog } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import { DiscordProvider, type DiscordOptions } from '@botmesh/discord'
import { DiscordDouble, TOKEN } from '../../../../test/doubles/discord/index.js'

const HASTE = 20

/** Waits a twentieth of what it is asked to, and notes what it was asked. */
export function hastyClock(asked: number[] = []): Clock {
  return {
    ...systemClock,
    now: () => systemClock.now(),
    monotonic: () => systemClock.monotonic(),
    setTimeout: (fn, ms, options) => {
      asked.push(ms)
      return systemClock.setTimeout(fn, ms / HASTE, options)
    },
  }
}

/** A sink of a replica whose store has a log. */
export class SinkWithLog extends RecordingSink {
  constructor(
    readonly log: MessageLog,
    clock: Clock = systemClock,
  ) {
    super({ clock })
  }
}

export interface Started {
  provider: DiscordProvider
  sink: RecordingSink
  leadership: AbortController
}

export class Bench {
  readonly sinks: RecordingSink[] = []
  private readonly providers: DiscordProvider[] = []

  private constructor(readonly discord: DiscordDouble) {}

  static async start(options: { heartbeatMs?: number } = {}): Promise<Bench> {
    return new Bench(await new DiscordDouble(options).listen())
  }

  provider(options: Partial<DiscordOptions> = {}): DiscordProvider {
    const provider = new DiscordProvider({
      token: TOKEN,
      account: 'tienda',
      apiRoot: this.discord.apiRoot,
      ...options,
    })
    this.providers.push(provider)
    return provider
  }

  sink(sink = new RecordingSink({ clock: hastyClock() })): RecordingSink {
    this.sinks.push(sink)
    return sink
  }

  /** A replica that leads, and is connected. */
  async open(options: Partial<DiscordOptions> = {}, sink = this.sink()): Promise<Started> {
    const started = await this.begin(options, sink)
    await sink.until(() => started.provider.state.status === 'open')
    return started
  }

  /** A replica that leads, connected or not. */
  async begin(options: Partial<DiscordOptions> = {}, sink = this.sink()): Promise<Started> {
    const provider = this.provider(options)
    const leadership = new AbortController()
    await provider.start(sink, leadership.signal)
    return { provider, sink, leadership }
  }

  async stop(): Promise<void> {
    await Promise.all(this.providers.map((provider) => provider.stop()))
    await this.discord.close()
  }
}

export function statuses(sink: RecordingSink): string[] {
  return sink.states.map((state) => (state.status === 'closed' ? `closed:${state.reason}` : state.status))
}

export function sharedLog(): MessageLog {
  return new MemoryLog(systemClock)
}
