/** Growing pauses between attempts, with jitter so that replicas do not come back in step. */
import type { Random } from '../contracts/clock.js'

export class Backoff {
  private attempt = 0

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

  reset(): void {
    this.attempt = 0
  }
}
