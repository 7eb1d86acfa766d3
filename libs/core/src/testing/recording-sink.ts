/**
 * A `ProviderSink` that remembers what a provider told it, and can be told to refuse messages or to take its time:
 * the runtime's side of a provider in tests.
 */
import type { Clock, Random } from '../contracts/clock.js'
import type { Logger } from '../contracts/logger.js'
import type { Message } from '../contracts/message.js'
import type { ProviderSink, ProviderState } from '../contracts/provider.js'
import { systemClock, systemRandom } from '../runtime/system-clock.js'

export interface RecordedLog {
  level: keyof Logger
  details: object
  message: string
}

export class RecordingSink implements ProviderSink {
  readonly messages: Message[] = []
  readonly states: ProviderState[] = []
  readonly pairings: { kind: 'qr' | 'code'; value: string }[] = []
  readonly errors: unknown[] = []
  readonly logs: RecordedLog[] = []
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger

  /**
   * Called for each message before it counts as accepted; a rejection refuses it. Replace it to make the runtime
   * slow or unreachable.
   */
  accept: (message: Message) => Promise<void> = async () => {}

  private readonly watchers = new Set<() => void>()

  constructor(options: { clock?: Clock; random?: Random } = {}) {
    this.clock = options.clock ?? systemClock
    this.random = options.random ?? systemRandom
    const log = (level: keyof Logger) => (details: object, message: string) => {
      this.logs.push({ level, details, message })
    }
    this.logger = { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') }
  }

  async message(message: Message): Promise<void> {
    await this.accept(message)
    this.messages.push(message)
    this.wake()
  }

  state(state: ProviderState): void {
    this.states.push(state)
    this.wake()
  }

  pairing(pairing: { kind: 'qr' | 'code'; value: string }): void {
    this.pairings.push(pairing)
    this.wake()
  }

  error(error: unknown): void {
    this.errors.push(error)
    this.wake()
  }

  get bodies(): string[] {
    return this.messages.map((message) => message.body)
  }

  /**
   * Resolves as soon as `condition` holds; it is asked after every event.
   * @param withinMs of real time, whatever the clock; default 15 s
   * @throws Error with what came instead
   */
  async until(condition: (sink: this) => boolean, withinMs = 15_000): Promise<void> {
    let late = false
    const timer = systemClock.setTimeout(
      () => {
        late = true
        this.wake()
      },
      withinMs,
      { background: true },
    )
    try {
      while (!condition(this)) {
        if (late) throw new Error(`Not within ${withinMs} ms. Instead: ${this.summary()}`)
        await new Promise<void>((resolve) => {
          const wake = () => {
            this.watchers.delete(wake)
            resolve()
          }
          this.watchers.add(wake)
        })
      }
    } finally {
      timer.cancel()
    }
  }

  private summary(): string {
    const { states, bodies, errors, logs, pairings } = this
    const lines = logs.map(({ level, message }) => `${level}: ${message}`)
    const kinds = pairings.map(({ kind }) => kind)
    return JSON.stringify({ states, bodies, errors: errors.map(String), pairings: kinds, logs: lines })
  }

  private wake(): void {
    for (const wake of this.watchers) wake()
  }
}
