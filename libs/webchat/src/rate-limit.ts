/** A token bucket: `burst` at once, refilled evenly. Pure but for the time it is given. */
export class RateLimit {
  private left: number
  private lastMs: number | undefined

  constructor(
    private readonly burst: number,
    private readonly perMinute: number,
  ) {
    this.left = burst
  }

  /** @returns 0 if this one may pass, else the milliseconds to wait. @param nowMs monotonic. */
  take(nowMs: number): number {
    const everyMs = 60_000 / this.perMinute
    if (this.lastMs !== undefined) {
      this.left = Math.min(this.burst, this.left + (nowMs - this.lastMs) / everyMs)
    }
    this.lastMs = nowMs
    if (this.left >= 1) {
      this.left -= 1
      return 0
    }
    return Math.ceil((1 - this.left) * everyMs)
  }
}
