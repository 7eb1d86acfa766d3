/**
 * The life of a transport's starts, which is the same whatever the platform: what `start` waits for, what is reported
 * and when, what a stop and a lost leadership mean. Kept in one place so that no provider gets it wrong (P1, scenarios
 * 20, 21, 23). A provider keeps one `SessionStarts` and writes a `TransportSession` that says how it works.
 */
import type { ProviderSink, ProviderState } from '../contracts/provider.js'
import { isOrderlyStop } from './deliver-in-order.js'
import { pause } from './pause.js'

const NOT_STARTED: ProviderState = { status: 'closed', reason: 'not started' }

/** What every session has; a transport adds its settings and its client. */
export interface TransportSessionParts {
  sink: ProviderSink
  /** Aborts when the leadership is lost, or given up in order (then with `CoordinationUnavailableError`). */
  leadership: AbortSignal
}

/**
 * One start of a provider: from `begin` until it was stopped, lost the leadership, or was refused for good. It is begun
 * once; the next start is another session.
 */
export abstract class TransportSession<Parts extends TransportSessionParts = TransportSessionParts> {
  /** Aborts when nothing new may be begun: stopped, or the leadership is gone. */
  protected readonly halt: AbortSignal
  private readonly stopping = new AbortController()
  private answer = () => {}
  private readonly firstAnswer = new Promise<void>((resolve) => (this.answer = resolve))
  private current: ProviderState = NOT_STARTED
  private life: Promise<void> | undefined
  private starting = true
  private refusal: { error: Error; reported: boolean } | undefined

  /**
   * @param firstAnswerMs how long `begin` waits for the platform's first answer, so that wrong credentials are an error
   *   of `start`.
   */
  constructor(
    protected readonly parts: Parts,
    private readonly firstAnswerMs: number,
  ) {
    this.halt = AbortSignal.any([parts.leadership, this.stopping.signal])
  }

  get state(): ProviderState {
    return this.current
  }

  get sink(): ProviderSink {
    return this.parts.sink
  }

  /** True once it neither lives nor will. */
  get over(): boolean {
    return this.halt.aborted || this.refused
  }

  /** Settles when nothing of it runs any more. */
  get ended(): Promise<void> {
    return this.life ?? Promise.resolve()
  }

  /**
   * Resolves with the first answer, good or bad, or after `firstAnswerMs` without one.
   * @throws the error given to `refuse`, if that happened by then.
   */
  async begin(): Promise<void> {
    this.report({ status: 'connecting' })
    this.life = this.live().then(
      () => this.close(),
      (error: unknown) => {
        // `live` handles what can be expected: this is a fault of the transport, and must be seen.
        this.sink.error(error)
        this.close()
      },
    )
    const waited = new AbortController()
    await Promise.race([
      this.firstAnswer,
      this.life,
      pause(this.sink.clock, this.firstAnswerMs, waited.signal),
    ])
    waited.abort()
    this.starting = false
    if (this.refusal !== undefined) throw this.refusal.error
  }

  /** Orderly: `live` may still confirm to the platform what was accepted. Resolves when nothing of it runs any more. */
  async end(): Promise<void> {
    this.stopping.abort()
    await this.ended
  }

  /** Works until halted or refused. What it rejects with is told as an error that nobody expected. */
  protected abstract live(): Promise<void>

  /** Once halted only `closed` is reported. Anything but `connecting` is a first answer. */
  protected report(state: ProviderState): void {
    if (this.halt.aborted && state.status !== 'closed') return
    this.current = state
    this.sink.state(state)
    if (state.status !== 'connecting') this.answered()
  }

  /**
   * The platform refuses for good: `begin` throws `error` if it still waits, else the sink is told (scenario 23).
   * @param reason how the state reads, which is then reported at once; default the error's message, when `live` ends.
   */
  protected refuse(error: Error, reason?: string): void {
    this.refusal = { error, reported: reason !== undefined }
    if (reason !== undefined) this.report({ status: 'closed', reason, final: true })
    if (!this.starting) this.sink.error(error)
  }

  /** `begin` need wait no longer. */
  protected answered(): void {
    this.answer()
  }

  protected get refused(): boolean {
    return this.refusal !== undefined
  }

  /** True: somebody else may be leading already. An abort for an orderly stop says so in its reason. */
  protected get lostLeadership(): boolean {
    const { aborted, reason } = this.parts.leadership
    return aborted && !isOrderlyStop(reason)
  }

  private close(): void {
    if (this.refusal === undefined) {
      this.report({ status: 'closed', reason: this.lostLeadership ? 'leadership lost' : 'stopped' })
    } else if (!this.refusal.reported) {
      this.report({ status: 'closed', reason: this.refusal.error.message, final: true })
    }
  }
}

/** The starts and stops of one provider: never two sessions of it at work in one process. */
export class SessionStarts<Session extends TransportSession> {
  private latest: Session | undefined
  private started: Promise<void> | undefined

  /** That of the last start, over or not. */
  get session(): Session | undefined {
    return this.latest
  }

  get state(): ProviderState {
    return this.latest?.state ?? NOT_STARTED
  }

  /**
   * Starting twice without `stop` keeps the first session, and `make` is not called (scenario 21). What is left of an
   * earlier start ends before the new session begins.
   * @throws as `TransportSession.begin`
   */
  start(make: () => Session): Promise<void> {
    const { latest: before } = this
    if (before !== undefined && !before.over && this.started !== undefined) return this.started
    const session = make()
    this.latest = session
    this.started = (before?.ended ?? Promise.resolve()).then(() => session.begin())
    return this.started
  }

  /** Resolves when nothing of the last start runs any more. Idempotent. */
  async stop(): Promise<void> {
    const { latest: session, started } = this
    if (session === undefined) return
    const ended = session.end()
    // A start that is still under way sees the stop; its error belongs to its caller.
    await started?.catch(() => {})
    await ended
    await session.ended
  }
}
