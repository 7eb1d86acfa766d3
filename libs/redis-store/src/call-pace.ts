/** When a call is sent that others may share. */

/** Calls `send` when this tick's sockets have all been read: each of their callbacks may ask for something. Nothing waits. */
export function atEndOfTick(send: () => void): void {
  setImmediate(send)
}

/**
 * Whether a call should wait for others of its tick. Where entries come by themselves, one after the other's answer, waiting
 * is all it costs them; where several come in a tick, a first one that went at once would make two calls of what is one.
 */
export class CallPace {
  private unanswered = 0
  private alone = false

  /** True: the last call was one entry by itself, and it has been answered. */
  get atOnce(): boolean {
    return this.alone && this.unanswered === 0
  }

  /** A call of so many entries is sent; `ended` once for each, whatever becomes of it. */
  began(entries: number): void {
    this.alone = entries === 1 && this.unanswered === 0
    this.unanswered += 1
  }

  ended(): void {
    this.unanswered -= 1
  }
}
