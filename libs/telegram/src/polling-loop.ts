/**
 * Long polling, so that nothing is lost and at most one replica polls.
 *
 * grammY's own runner confirms updates when it fetches the next ones, whether they were handled or not; here an
 * update is confirmed (asked beyond) only after the runtime has accepted it.
 *
 * States:
 * - connecting: before the first poll is answered. → open, waiting, ended
 * - open: polls follow one another. → waiting when one fails; ended
 * - waiting (reported as `closed` with its reason): pauses, growing, then polls again. → open; ended
 * - ended: halted, or the token was refused. Nothing leaves it.
 * A poll never begins once `halt` has aborted (scenario 20), and an abort cuts the one that waits.
 */
import {
  Backoff,
  chatKeyOf,
  deliverInOrder,
  isOrderlyStop,
  pause,
  type Message,
  type ProviderSink,
  type ProviderState,
} from '@botmesh/core'
import {
  isAddressed,
  parseInbound,
  updateIdOf,
  type InboundContext,
  type TelegramEvent,
} from './parse-inbound.js'
import type { TelegramClient } from './telegram.client.js'
import { judgeConnection, type ConnectionFailure } from './telegram-errors.js'

export interface PollingPlan {
  provider: string
  pollTimeoutS: number
  /** Aborts on stop and when the leadership is lost. */
  halt: AbortSignal
  sink: ProviderSink
  context: InboundContext
  /** Settles when a batch may be parsed: one with an addressee waits for the bot's name, within bounds. */
  named: (addressed: boolean) => Promise<void>
  report: (state: ProviderState) => void
  /** After a button press was accepted: ends the spinner on the user's screen. */
  acknowledge: (callbackId: string) => Promise<void>
}

/** A poller that was put off by another one counts as undisturbed after this long. */
const CALM_MS = 60_000
const CONFIRM_MS = 900

export class PollingLoop {
  /** Where to ask from: everything before it has been accepted. */
  private offset: number | undefined
  /** Accepted, but beyond one that was not: not handed over again when it comes again. */
  private readonly acceptedBeyond = new Set<number>()
  private readonly network: Backoff
  private readonly conflicts: Backoff
  private readonly refusals: Backoff
  private isOpen = false
  private openSinceMs = 0
  private webhookRemoved = false

  constructor(
    private readonly client: TelegramClient,
    private readonly plan: PollingPlan,
  ) {
    const { random } = plan.sink
    this.network = new Backoff(random, 500, 30_000)
    this.conflicts = new Backoff(random, 4_000, 60_000)
    this.refusals = new Backoff(random, 250, 10_000)
  }

  /** Polls until halted, or until the token is refused. Never rejects. */
  async run(): Promise<'halted' | { refused: string }> {
    const { halt } = this.plan
    while (!halt.aborted) {
      // The first poll asks without waiting: its answer says at once whether the connection works.
      const timeoutS = this.isOpen ? this.plan.pollTimeoutS : 0
      let updates: unknown[]
      try {
        updates = await this.client.updates(this.offset, { timeoutS }, halt)
      } catch (error) {
        if (halt.aborted) break
        const failure = judgeConnection(error)
        if (failure.kind === 'refused') return { refused: failure.reason }
        await this.waitAfter(failure)
        continue
      }
      this.opened()
      await this.plan.named(updates.some(isAddressed))
      if (!(await this.accept(updates))) await this.pause(this.refusals.next())
      else this.refusals.reset()
    }
    return 'halted'
  }

  /** True: the last poll was answered, so that nobody else polls. */
  get open(): boolean {
    return this.isOpen
  }

  /**
   * On an orderly stop, once `run` has ended: confirms what was accepted, so that the next poller does not get it
   * again, and ends the abandoned poll on Telegram's side. Bounded; a failure only means a few copies.
   */
  async confirm(): Promise<void> {
    const deadline = new AbortController()
    const timer = this.plan.sink.clock.setTimeout(() => deadline.abort(), CONFIRM_MS)
    try {
      await this.client.updates(this.offset, { timeoutS: 0, limit: 1 }, deadline.signal)
    } catch (error) {
      const { reason } = judgeConnection(error)
      this.log('debug', { reason }, 'the last updates could not be confirmed; they will come again')
    } finally {
      timer.cancel()
    }
  }

  /** @returns false if the runtime did not accept everything: the same updates have to be asked for again. */
  private async accept(updates: readonly unknown[]): Promise<boolean> {
    const batch = updates.flatMap((update) => {
      const id = updateIdOf(update)
      return id === undefined || this.acceptedBeyond.has(id) ? [] : [{ id, event: this.parse(update) }]
    })
    const messages = batch.filter(
      (one): one is { id: number; event: MessageEvent } => one.event.kind === 'message',
    )
    const outcomes = await deliverInOrder(
      messages.map(({ event }) => ({ key: this.keyOf(event.message), run: () => this.hand(event) })),
      this.plan.halt,
    )
    const refused = new Set<number>()
    outcomes.forEach((outcome, index) => {
      if (outcome.status !== 'accepted') refused.add(messages[index]!.id)
      if (outcome.status === 'failed') {
        const level = isOrderlyStop(outcome.error) ? 'debug' : 'warn'
        this.log(level, { err: outcome.error }, 'a message was not accepted; it will be asked for again')
      }
    })
    this.advance(
      updates.map(updateIdOf).filter((id) => id !== undefined),
      refused,
    )
    return refused.size === 0
  }

  /** Moves the offset up to the first update that was not accepted. */
  private advance(ids: readonly number[], refused: ReadonlySet<number>): void {
    let held = false
    for (const id of ids) {
      held ||= refused.has(id)
      if (!held) this.offset = id + 1
      else if (!refused.has(id)) this.acceptedBeyond.add(id)
    }
    for (const id of this.acceptedBeyond) {
      if (this.offset !== undefined && id < this.offset) this.acceptedBeyond.delete(id)
    }
  }

  private parse(update: unknown): TelegramEvent {
    const event = parseInbound(update, this.plan.context, this.plan.sink.clock.now())
    if (event.kind === 'ignored') this.log('debug', { reason: event.reason }, 'update ignored')
    return event
  }

  private async hand(event: MessageEvent): Promise<void> {
    await this.plan.sink.message(event.message)
    if (event.callbackId !== undefined) void this.plan.acknowledge(event.callbackId)
  }

  private opened(): void {
    this.network.reset()
    const now = this.plan.sink.clock.monotonic()
    if (!this.isOpen) {
      this.isOpen = true
      this.openSinceMs = now
      this.plan.report({ status: 'open' })
    } else if (now - this.openSinceMs > CALM_MS) {
      // Not before: two pollers that put each other off in turn must not start afresh each time.
      this.conflicts.reset()
    }
  }

  private async waitAfter(failure: Exclude<ConnectionFailure, { kind: 'refused' }>): Promise<void> {
    if (failure.kind === 'webhook-set' && !this.webhookRemoved) {
      // Left over from webhook mode. Only once: whoever sets it again meanwhile means it.
      this.webhookRemoved = true
      this.log('warn', {}, 'a webhook is registered for this bot; removing it, as mode is polling')
      if (await this.removeWebhook()) return
    }
    const pauseMs =
      failure.kind === 'slow-down'
        ? failure.retryAfterMs
        : failure.kind === 'unreachable'
          ? this.network.next()
          : this.conflicts.next()
    this.isOpen = false
    this.plan.report({ status: 'closed', reason: `${failure.kind}: ${failure.reason}` })
    this.log('warn', { reason: failure.reason, pauseMs }, 'polling pauses')
    await this.pause(pauseMs)
  }

  private async removeWebhook(): Promise<boolean> {
    try {
      await this.client.deleteWebhook(this.plan.halt)
      return true
    } catch (error) {
      this.log('debug', { reason: judgeConnection(error).reason }, 'the webhook could not be removed')
      return false
    }
  }

  private pause(ms: number): Promise<void> {
    return pause(this.plan.sink.clock, ms, this.plan.halt)
  }

  private keyOf(message: Message): string {
    return chatKeyOf({ provider: this.plan.provider, ...message })
  }

  private log(level: 'debug' | 'warn', details: object, message: string): void {
    this.plan.sink.logger[level]({ provider: this.plan.provider, ...details }, message)
  }
}

type MessageEvent = TelegramEvent & { kind: 'message' }
