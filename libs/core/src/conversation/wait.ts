/** A step waiting for an answer, with the timers that may end or interrupt it (T5). */
import type { Clock, Timer } from '../contracts/clock.js'
import type { Answer } from './answers.js'
import type { WaitMark } from './ledger.js'

export { waitTimerId } from '../kernel/wait-timer.js'

/** A `c.idle` of the step that waits. */
export interface Watcher {
  ms: number
  id: number
  fire: () => unknown
  timer: Timer | null
}

export class Wait {
  readonly #timers: Timer[] = []

  constructor(
    private readonly watchers: ReadonlySet<Watcher>,
    readonly mark: WaitMark,
    readonly resolve: (answer: Answer) => void,
    readonly reject: (error: unknown) => void,
  ) {}

  /** Timers only ask for a turn: what they do is done under it. */
  arm(clock: Clock, onTimeout: () => void, onIdle: (watcher: Watcher) => void): void {
    if (this.mark.timeoutMs !== null) {
      this.#timers.push(clock.setTimeout(onTimeout, this.mark.timeoutMs, { background: true }))
    }
    for (const watcher of this.watchers) {
      watcher.timer = clock.setTimeout(() => onIdle(watcher), watcher.ms, { background: true })
    }
  }

  /** On its step's first question, with nothing that only this copy would do. */
  get replaceable(): boolean {
    return this.mark.question === 0 && this.mark.timeoutMs === null && this.watchers.size === 0
  }

  /** Cancels all timers. Idempotent. */
  disarm(): void {
    for (const timer of this.#timers.splice(0)) timer.cancel()
    for (const watcher of this.watchers) {
      watcher.timer?.cancel()
      watcher.timer = null
    }
  }
}

/** Whether something runs, as a promise that settles when it does not. */
export class Settling {
  #promise: Promise<void> | null = null
  #resolve: () => void = () => undefined

  constructor() {
    this.begin()
  }

  get promise(): Promise<void> | null {
    return this.#promise
  }

  begin(): void {
    if (this.#promise !== null) return
    this.#promise = new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  done(): void {
    this.#promise = null
    this.#resolve()
  }
}
