/**
 * The way out to the transport: which send of a chat is next, may this replica send (P4), must it wait (`retryAfterMs`
 * of the platform, for one chat or the whole account), and is a refused send worth another try (scenario 16). It knows
 * nothing of turns but the guard that it is given, which is asked right before every attempt (L2).
 */
import type { Clock, Random } from '../contracts/clock.js'
import { SendError } from '../contracts/errors.js'
import type { OutgoingContent, Sent } from '../contracts/message.js'
import type { Provider, SendTarget } from '../contracts/provider.js'
import { SendLines } from './send-lines.js'

export interface SendGuard {
  /** @throws LeaseLostError if the one who sends may no longer act. */
  assertLive?(): void
  /** Awaited once, when the send is the next of its chat and nothing pauses it, before the first attempt. If it rejects,
   * nothing is sent. */
  begin?(): Promise<void>
  /** Cuts waits short. */
  signal?: AbortSignal
  /** The same for every attempt. */
  idempotencyKey?: string
  /** The message in whose turn this is sent. */
  inboundId?: string
}

export interface SendGateOptions {
  provider: Provider
  clock: Clock
  random: Random
  /** @throws ProviderNotLeaderError */
  assertMaySend(): void
}

/** Attempts of one send that the platform refused for now; later ones are the journal's (D3) or the caller's. */
const MAX_ATTEMPTS = 3
const FIRST_RETRY_MS = 250
/** A longer pause than this is not waited for: the error says how long, and the caller decides. */
const LONGEST_WAIT_MS = 30_000

export class SendGate {
  private accountUntil = 0
  private readonly chatUntil = new Map<string, number>()
  private readonly lines: SendLines

  constructor(private readonly options: SendGateOptions) {
    this.lines = new SendLines(options.clock)
  }

  /** After what was given before for this chat. @throws LeaseLostError, ProviderNotLeaderError, SendError */
  deliver(target: SendTarget, content: OutgoingContent, guard: SendGuard = {}): Promise<Sent> {
    return this.lines.run(target.chatId, guard.signal, () => this.attempts(target, content, guard))
  }

  private async attempts(target: SendTarget, content: OutgoingContent, guard: SendGuard): Promise<Sent> {
    const { provider } = this.options
    for (let attempt = 1; ; attempt++) {
      const waitMs = this.closedFor(target)
      if (waitMs > 0) await this.wait(waitMs, guard.signal)
      if (attempt === 1) await guard.begin?.()
      guard.assertLive?.()
      this.options.assertMaySend()
      try {
        return await provider.send(target, content, sendOptionsOf(guard))
      } catch (error) {
        if (!(error instanceof SendError)) throw error
        this.note(target, error)
        if (!this.worthAnotherTry(error, attempt)) throw error
        if (error.details.retryAfterMs === undefined) {
          const backoffMs = FIRST_RETRY_MS * 2 ** (attempt - 1) * (1 + this.options.random.next() / 2)
          await this.wait(backoffMs, guard.signal)
        }
      }
    }
  }

  private worthAnotherTry(error: SendError, attempt: number): boolean {
    if (attempt >= MAX_ATTEMPTS) return false
    if ((error.details.retryAfterMs ?? 0) > LONGEST_WAIT_MS) return false
    if (error.outcome === 'retryable') return true
    return error.outcome === 'uncertain' && this.options.provider.capabilities.uncertainSends === 'resend'
  }

  private note(target: SendTarget, error: SendError): void {
    const { retryAfterMs, scope } = error.details
    // A pause that never ends, or is no number, is a mistake of the transport's: nothing could ever be sent again.
    if (retryAfterMs === undefined || !Number.isFinite(retryAfterMs)) return
    const until = this.options.clock.monotonic() + retryAfterMs
    if (scope === 'account') this.accountUntil = Math.max(this.accountUntil, until)
    else this.chatUntil.set(target.chatId, until)
  }

  private closedFor(target: SendTarget): number {
    if (this.accountUntil === 0 && this.chatUntil.size === 0) return 0
    const now = this.options.clock.monotonic()
    if (this.accountUntil <= now) this.accountUntil = 0
    for (const [chatId, until] of this.chatUntil) if (until <= now) this.chatUntil.delete(chatId)
    return Math.max(this.accountUntil, this.chatUntil.get(target.chatId) ?? 0) - now
  }

  private async wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (ms > LONGEST_WAIT_MS) {
      throw new SendError(
        `Provider "${this.options.provider.id}" asked to pause sending for another ${Math.ceil(ms)} ms.`,
        {
          provider: this.options.provider.id,
          outcome: 'retryable',
          retryAfterMs: Math.ceil(ms),
          scope: this.accountPaused ? 'account' : 'chat',
        },
      )
    }
    await pause(this.options.clock, ms, signal)
  }

  /** For the error: whom the present pause concerns. */
  get accountPaused(): boolean {
    return this.accountUntil > this.options.clock.monotonic()
  }
}

/** Rejects with the signal's reason if it aborts first. */
function pause(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason as Error)
    const wake = () => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }
    // In the background: what waits to be sent again does not keep a process alive that has stopped its bot.
    const timer = clock.setTimeout(wake, ms, { background: true })
    function onAbort(): void {
      timer.cancel()
      reject(signal?.reason as Error)
    }
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

function sendOptionsOf({ signal, idempotencyKey, inboundId }: SendGuard) {
  if (signal === undefined && idempotencyKey === undefined && inboundId === undefined) return undefined
  return {
    ...(signal === undefined ? {} : { signal }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(inboundId === undefined ? {} : { inboundId }),
  }
}
