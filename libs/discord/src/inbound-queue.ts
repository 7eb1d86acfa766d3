/**
 * Hands messages to the runtime in the order received within a chat, chats side by side. Discord delivers an event
 * once a session, so a refusal is tried again here, for about a minute. It also knows up to where all events were
 * accepted: a session that is resumed from there loses none.
 */
import { Backoff, ProviderError, type Message, type ProviderSink } from '@botmesh/core'

const ATTEMPTS = 8

export class InboundQueue {
  private readonly chains = new Map<string, Promise<void>>()
  /** Events of the present session that are not accepted yet, in the order they came. */
  private readonly pending = new Set<{ sequence: number }>()
  private highest = 0
  /** Of the pauses between attempts. */
  private readonly wakers = new Set<() => void>()
  private closed = false

  constructor(
    private readonly provider: string,
    private readonly sink: ProviderSink,
    private readonly onAccepted: () => void,
  ) {}

  /** Number of the last event up to which nothing is missing. */
  get acceptedUpTo(): number {
    const [oldest] = this.pending
    return oldest === undefined ? this.highest : oldest.sequence - 1
  }

  /** @param messages of one event, possibly none. @param sequence the event's number in its session. */
  push(messages: readonly Message[], sequence: number): void {
    this.highest = Math.max(this.highest, sequence)
    const [first] = messages
    if (first === undefined) return
    const event = { sequence }
    this.pending.add(event)
    const before = this.chains.get(first.chatId) ?? Promise.resolve()
    const chain = before
      .then(() => this.deliver(messages))
      .then((accepted) => {
        if (accepted) this.pending.delete(event)
        if (this.chains.get(first.chatId) === chain) this.chains.delete(first.chatId)
        this.onAccepted()
      })
    this.chains.set(first.chatId, chain)
  }

  /** A new session counts its events anew. Those of the former one are handed over all the same. */
  restart(): void {
    this.pending.clear()
    this.highest = 0
  }

  /** No further attempts; resolves when those under way have ended. */
  async close(): Promise<void> {
    this.closed = true
    for (const wake of this.wakers) wake()
    await Promise.all(this.chains.values())
  }

  /** Never rejects. @returns false if it was not settled: the queue is closed. */
  private async deliver(messages: readonly Message[]): Promise<boolean> {
    for (const message of messages) if (!(await this.deliverOne(message))) return false
    return true
  }

  private async deliverOne(message: Message): Promise<boolean> {
    const pause = new Backoff(this.sink.random, 500, 15_000)
    for (let attempt = 1; ; attempt += 1) {
      if (this.closed) return false
      try {
        await this.sink.message(message)
        return true
      } catch (error) {
        if (this.closed) return false
        if (attempt >= ATTEMPTS) {
          this.sink.error(
            new ProviderError(
              `Message ${message.id} of chat ${message.chatId} could not be handed over and is lost: Discord does not deliver twice.`,
              { provider: this.provider, reason: 'message-not-accepted', final: false },
              error,
            ),
          )
          return true
        }
        await this.sleep(pause.next())
      }
    }
  }

  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        timer.cancel()
        this.wakers.delete(wake)
        resolve()
      }
      const timer = this.sink.clock.setTimeout(wake, ms, { background: true })
      this.wakers.add(wake)
      if (this.closed) wake()
    })
  }
}
