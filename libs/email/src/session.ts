/** One start of the provider: from `begin` until it was stopped, lost the leadership, or was refused for good. */
import { SendError, ProviderError, isOrderlyStop, type ProviderSink, type ProviderState } from '@botmesh/core'
import type { FileShelf } from './file-shelf.js'
import type { EmailSettings } from './options.js'
import type { ThreadState } from './parse-inbound.js'
import { pause } from './pause.js'
import type { MailFile } from './read-mail.js'
import type { SmtpClient } from './smtp.client.js'
import type { Threads } from './threads.js'

/** How long `start` waits for the first answer, so that a wrong password is an error of `start`. */
const FIRST_ANSWER_MS = 3_000

export interface SessionParts {
  settings: EmailSettings
  sink: ProviderSink
  smtp: SmtpClient
  threads: Threads
  shelf: FileShelf
  /** Aborts when the leadership is lost, or given up in order (then with `CoordinationUnavailableError`). */
  leadership: AbortSignal
}

export abstract class Session {
  protected readonly halt: AbortSignal
  private readonly stopping = new AbortController()
  private answered = () => {}
  private readonly firstAnswer = new Promise<void>((resolve) => (this.answered = resolve))
  private current: ProviderState = { status: 'closed', reason: 'not started' }
  private life: Promise<void> | undefined
  private starting = true
  private refusal: Error | undefined

  constructor(protected readonly parts: SessionParts) {
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
    return this.halt.aborted || this.refusal !== undefined
  }

  /** Settles when nothing of it runs any more. */
  get ended(): Promise<void> {
    return this.life ?? Promise.resolve()
  }

  /** @throws ProviderError if the mailbox refuses while it waits for the first answer (3 s at most). */
  async begin(): Promise<void> {
    this.report({ status: 'connecting' })
    this.life = Promise.all([this.live(), this.checkSending()]).then(
      () => this.close(),
      (error: unknown) => {
        // Both handle what can be expected: this is a fault of this package, and must be seen.
        this.sink.error(error)
        this.close()
      },
    )
    const waited = new AbortController()
    await Promise.race([this.firstAnswer, this.life, pause(this.sink.clock, FIRST_ANSWER_MS, waited.signal)])
    waited.abort()
    this.starting = false
    if (this.refusal !== undefined) throw this.refusal
  }

  /** Orderly: what was accepted is marked in the mailbox. */
  async end(): Promise<void> {
    this.stopping.abort()
    await this.ended
  }

  /** The thread of a chat as the mailbox, or whatever else outlives a replica, has it. Never rejects. */
  abstract findThread(chatId: string): Promise<ThreadState | null>

  /** A mail was answered: notes it where the next leader sees it. Never rejects. */
  abstract noteAnswered(messageId: string): void

  /** A file of a mail that came in; null if it is there no more. */
  abstract findFile(mailId: string, number: number): Promise<MailFile | null>

  /** Works until halted or refused. */
  protected abstract live(): Promise<void>

  protected report(state: ProviderState): void {
    if (this.halt.aborted && state.status !== 'closed') return
    this.current = state
    this.sink.state(state)
    if (state.status !== 'connecting') this.answered()
  }

  /** The mailbox will not open: reported by `start` if it still waits, else through the sink. */
  protected refuse(reason: string): void {
    const details = { provider: this.parts.settings.id, reason, final: true }
    this.refusal = new ProviderError(`The mailbox cannot be opened: ${reason}.`, details)
    if (!this.starting) this.sink.error(this.refusal)
    this.answered()
  }

  /** True: somebody else may be leading already. An abort for an orderly stop says so in its reason. */
  protected get lostLeadership(): boolean {
    const { aborted, reason } = this.parts.leadership
    return aborted && !isOrderlyStop(reason)
  }

  protected log(level: 'debug' | 'info' | 'warn', details: object, message: string): void {
    this.sink.logger[level]({ provider: this.parts.settings.id, ...details }, message)
  }

  /** A wrong password for sending is told at the start, not by the first answer that fails. Never rejects. */
  private async checkSending(): Promise<void> {
    const { smtp, sink } = this.parts
    try {
      await smtp.check(this.halt)
    } catch (error) {
      if (this.halt.aborted) return
      if (error instanceof SendError && error.outcome === 'final') sink.error(error)
      else this.log('warn', { err: error }, 'the server for sending does not answer yet')
    }
  }

  private close(): void {
    if (this.refusal !== undefined) {
      this.report({ status: 'closed', reason: this.refusal.message, final: true })
    } else {
      this.report({ status: 'closed', reason: this.lostLeadership ? 'leadership lost' : 'stopped' })
    }
  }
}
