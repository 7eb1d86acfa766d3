/**
 * What of a run happens without a message (T5): a wait's timeout, `c.idle`, and a step that goes on by itself. A timer
 * only asks for a turn; what it does is done under it, and only if the copy is current and its wait still open then.
 */
import { LeaseLostError, WaitTimeoutError } from '../contracts/errors.js'
import { Directive } from './contexts.js'
import type { Frame } from './frame.js'
import type { ConversationHost, TurnScope } from './port.js'
import type { Ledger } from './ledger.js'
import type { Wait, Watcher } from './wait.js'
import { waitTimerId } from '../kernel/wait-timer.js'

interface TimedRun {
  readonly host: ConversationHost
  readonly key: string
  readonly visit: number
  readonly ledger: Ledger
  /** It is not gone, and waits in `wait` (null: in none). */
  isOpen(wait: Wait | null): boolean
  isCurrent(scope: TurnScope): boolean
  begin(scope: TurnScope): void
  closeWait(): void
  waitsAgain(): void
  vanish(error: LeaseLostError): void
}

export class RunTimers {
  #turnWanted: (() => void) | null = null

  constructor(private readonly run: TimedRun) {}

  arm(wait: Wait, frame: Frame): void {
    const { clock } = this.run.host
    const { visit } = this.run
    wait.arm(
      clock,
      () => this.#wake(wait, waitTimerId(visit, wait.mark.question), (scope) => this.timedOut(wait, scope)),
      (watcher) =>
        this.#wake(wait, `idle-${visit}-${watcher.id}`, (scope) => this.#idle(wait, watcher, frame, scope)),
    )
  }

  /** Resolves under a turn of the chat, a message's or one of its own. */
  async regainTurn(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#turnWanted = resolve
      this.#wake(null, `step-${this.run.visit}`, (scope) => {
        if (this.#turnWanted === null) return
        this.run.begin(scope)
        this.turnCame()
      })
    })
  }

  /** A turn is there; whoever wants one goes on. */
  turnCame(): void {
    const wanted = this.#turnWanted
    this.#turnWanted = null
    wanted?.()
  }

  #wake(wait: Wait | null, timerId: string, act: (scope: TurnScope) => void): void {
    const { run } = this
    run.host.wake(run.key, timerId, async (scope) => {
      if (!run.isOpen(wait)) return
      if (run.isCurrent(scope)) act(scope)
      else run.vanish(new LeaseLostError(run.key, 'superseded'))
    })
  }

  /** The wait is over: by its own timer, or by its appointment if that was late (ADR 8). */
  timedOut(wait: Wait, scope: TurnScope): void {
    this.run.begin(scope)
    this.run.ledger.stageTimeout(scope)
    this.run.closeWait()
    wait.reject(new WaitTimeoutError(this.run.key, wait.mark.timeoutMs ?? 0))
  }

  #idle(wait: Wait, watcher: Watcher, frame: Frame, scope: TurnScope): void {
    if (!frame.watchers.has(watcher)) return
    this.run.begin(scope)
    this.#runIdle(wait, watcher, frame).catch((error: unknown) => this.run.host.report(error))
  }

  async #runIdle(wait: Wait, watcher: Watcher, frame: Frame): Promise<void> {
    const { run } = this
    const outcome = await frame.fire(watcher)
    await frame.sent()
    if (!run.isOpen(wait)) return
    if ('value' in outcome && !(outcome.value instanceof Directive)) return run.waitsAgain()
    run.closeWait()
    frame.abandon(outcome)
  }
}
