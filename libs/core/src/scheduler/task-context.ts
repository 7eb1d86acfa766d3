/** What the function of a task is given. */
import { ConfigError } from '../contracts/errors.js'

export interface TaskRun {
  id: string | null
  occurrence: number
  attempt: number
  /** Null: the task runs on every replica. */
  fence: number | null
  signal: AbortSignal
  assertHeld(): void
}

export class TaskContext {
  constructor(private readonly run: TaskRun) {}

  /** Of a durable task; null for one that runs on every replica. */
  get id(): string | null {
    return this.run.id
  }
  /** When it was to run; now is later after a take-over, a retry or a catch-up. */
  get occurrence(): Date {
    return new Date(this.run.occurrence)
  }
  /** 1 at first; more after a failure, or after the death of the replica that was at it. */
  get attempt(): number {
    return this.run.attempt
  }
  /**
   * Aborts when this run may no longer act: the leadership is lost (another replica may be at the same occurrence) or
   * the bot stops. `reason` is the `LeaseLostError`. A function cannot be stopped from outside: pass it on, or end.
   */
  get signal(): AbortSignal {
    return this.run.signal
  }
  /**
   * A safe integer, strictly greater under every later leader: give it to what the task writes to, which refuses lower
   * ones (docs/guides/locks.md).
   * @throws ConfigError in a task that runs on every replica: it excludes nobody, so it has no fence.
   */
  get fence(): number {
    const { fence } = this.run
    if (fence !== null) return fence
    throw new ConfigError(
      'This task has no fence, as it runs on every replica: give it an `id`, and the bot a `scheduler`.',
      { option: 'id' },
    )
  }
  /** No I/O; monotonic clock. @throws LeaseLostError if this run may no longer act. */
  assertHeld(): void {
    this.run.assertHeld()
  }
}
