/**
 * Opening a store: tried again, with growing pauses, while the server loads, is busy or does not answer, until it is open,
 * refused, out of time, or closed.
 */
import { ConfigError, type Clock, type Logger } from '@botmesh/core'
import { whyNotNow } from './not-now.js'

export interface OpeningOptions {
  startTimeoutMs: number
  clock: Clock
  logger: Logger
  /** Connects once. */
  attempt: (withinMs: number) => Promise<void>
}

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1000
/** Shortest attempt that is worth while. */
const LEAST_MS = 100
/** Timers may come that early. */
const TIMER_MS = 1

/** Besides what `whyNotNow` knows: replies that are worth waiting for only while nothing works yet. */
const FOR_NOW = /^(?:BUSY|TRYAGAIN|ASK|ERR max number of clients)\b/

export class Opening {
  /** Rejects with what the last attempt threw that time did not cut short, if there was one: that is the reason. */
  readonly result: Promise<void>
  private over = false
  private wake: (() => void) | null = null

  constructor(private readonly options: OpeningOptions) {
    this.result = this.run()
  }

  /** It was closed: no further attempt is made, and the one under way counts no more. */
  end(): void {
    this.over = true
    this.wake?.()
  }

  private async run(): Promise<void> {
    const { startTimeoutMs, clock, logger, attempt } = this.options
    const ends = clock.monotonic() + startTimeoutMs
    const leftMs = (): number => ends - clock.monotonic()
    let reason: unknown
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      try {
        await attempt(leftMs())
        if (this.over) throw new Error('It was closed while it was being opened.')
        return
      } catch (error) {
        if (!isPassing(error)) throw error
        if (reason === undefined || leftMs() > TIMER_MS) reason = error
        if (!this.over && leftMs() > LEAST_MS) {
          if (pauseMs === FIRST_PAUSE_MS) logger.warn({ err: error }, 'Redis is not ready yet; trying again')
          await this.pause(Math.min(pauseMs, leftMs() - LEAST_MS))
        }
        if (this.over || leftMs() < LEAST_MS) throw reason
      }
    }
  }

  private async pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.options.clock.setTimeout(resolve, ms)
      this.wake = () => {
        timer.cancel()
        resolve()
      }
    })
    this.wake = null
  }
}

/** Whether to try again what failed: nobody answered, or a server that is not ready. */
function isPassing(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause) {
    if (one instanceof ConfigError) return false
    if (one.name === 'ReplyError') return whyNotNow(one.message) !== null || FOR_NOW.test(one.message)
  }
  return true
}
