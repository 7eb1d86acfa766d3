/** Growing pauses between attempts, with jitter so that replicas do not come back in step. */
import type { Clock, Random } from '../contracts/clock.js'

export class Backoff {
  private attempt = 0
  private wake: (() => void) | null = null

  constructor(
    private readonly random: Random,
    private readonly firstMs: number,
    private readonly longestMs: number,
  ) {}

  /** The next pause: doubles each time, between half and all of its nominal length. */
  next(): number {
    const nominal = Math.min(this.longestMs, this.firstMs * 2 ** this.attempt)
    this.attempt = Math.min(this.attempt + 1, 30)
    return nominal * (0.5 + this.random.next() / 2)
  }

  /** Waits for the next pause, or until `hurry`. */
  async wait(clock: Clock): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = clock.setTimeout(resolve, this.next(), { background: true })
      this.wake = () => {
        timer.cancel()
        resolve()
      }
    })
    this.wake = null
  }

  /** Ends a `wait` at once; the pauses begin anew. */
  hurry(): void {
    this.attempt = 0
    this.wake?.()
  }

  reset(): void {
    this.attempt = 0
  }
}
