/**
 * For stores: removes what has had its time. Nothing runs while the store is idle: a write now and then starts it, in
 * the background. What a store has gathered may take minutes to remove; one that is closed waits for a portion of it.
 */
import type { StoreLinkOptions } from './store-link.js'

const EVERY_MS = 60_000

export abstract class BackgroundSweep {
  private running: Promise<void> | null = null
  private pauses = 0
  private nextAt: number

  /** @param what is removed, for the log: `old rows`. */
  constructor(
    private readonly room: Pick<StoreLinkOptions, 'clock' | 'random' | 'logger'>,
    private readonly what: string,
  ) {
    // Not at once, and not all replicas at one time.
    this.nextAt = room.clock.monotonic() + EVERY_MS * (0.5 + room.random.next())
  }

  /** Removes it, by `portions`. */
  protected abstract sweep(): Promise<void>

  /** @param remove removes some of it, in a call of its own; true if there is more. */
  protected async portions(remove: () => Promise<boolean>): Promise<void> {
    while (this.pauses === 0 && (await remove()));
  }

  /** Called with writes; does nothing but compare a clock most of the time. */
  hint(): void {
    const { clock, logger } = this.room
    if (this.running || this.pauses > 0 || clock.monotonic() < this.nextAt) return
    this.nextAt = clock.monotonic() + EVERY_MS
    this.running = this.sweep()
      .catch((error: unknown) =>
        logger.warn({ err: error }, `${this.what} could not be removed; the next try comes`),
      )
      .finally(() => {
        this.running = null
      })
  }

  /**
   * Does `work`, the closing of the store, while nothing runs: after the portion under way; the rest is for another time.
   * @throws what `work` throws
   */
  async paused(work: () => Promise<void>): Promise<void> {
    this.pauses += 1
    try {
      await this.running
      await work()
    } finally {
      this.pauses -= 1
    }
  }
}
