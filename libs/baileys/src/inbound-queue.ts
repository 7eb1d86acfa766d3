/**
 * Hands messages to the runtime in the order received within a chat, chats side by side. A refusal is tried again
 * here, for about a minute.
 */
import { Backoff, ProviderError, type Message, type ProviderSink } from '@botmesh/core'

const ATTEMPTS = 8

export class InboundQueue {
  private readonly chains = new Map<string, Promise<boolean>>()
  /** Of the pauses between attempts. */
  private readonly wakers = new Set<() => void>()
  private closed = false
  /** Messages that were refused and are tried again. */
  private refused = 0

  constructor(
    private readonly provider: string,
    private readonly sink: ProviderSink,
    /** Told of each message that will be tried again. */
    private readonly onRefused: () => void = () => {},
  ) {}

  /** Never rejects. @returns false if it was given up; `sink.error` was told why then, unless this was closed. */
  push(message: Message): Promise<boolean> {
    const before = this.chains.get(message.chatId)
    const chain = (
      before === undefined ? this.deliver(message) : before.then(() => this.deliver(message))
    ).finally(() => {
      if (this.chains.get(message.chatId) === chain) this.chains.delete(message.chatId)
    })
    this.chains.set(message.chatId, chain)
    return chain
  }

  /** True while a message waits for another attempt. */
  get isRefused(): boolean {
    return this.refused > 0
  }

  /** Resolves when nothing is being handed over any more. Never rejects. */
  async idle(): Promise<void> {
    while (this.chains.size > 0) await Promise.all(this.chains.values())
  }

  retryNoMore(): void {
    this.closed = true
    for (const wake of this.wakers) wake()
  }

  /** No further attempts; resolves when those under way have ended. */
  async close(): Promise<void> {
    this.retryNoMore()
    await this.idle()
  }

  private async deliver(message: Message): Promise<boolean> {
    try {
      await this.sink.message(message)
      return true
    } catch (error) {
      this.refused += 1
      this.onRefused()
      return await this.insist(message, error).finally(() => (this.refused -= 1))
    }
  }

  private async insist(message: Message, refusal: unknown): Promise<boolean> {
    const pause = new Backoff(this.sink.random, 500, 15_000)
    let reason = refusal
    for (let attempt = 2; attempt <= ATTEMPTS; attempt++) {
      if (this.closed) return false
      await this.sleep(pause.next())
      try {
        await this.sink.message(message)
        return true
      } catch (error) {
        reason = error
      }
    }
    if (!this.closed) this.sink.error(this.notHandedOver(message, reason))
    return false
  }

  private notHandedOver({ id, chatId }: Message, reason: unknown): ProviderError {
    return new ProviderError(
      `Message ${id} of chat ${chatId} could not be handed over. WhatsApp was not told that it arrived: it delivers it again to the next connection, which is made now.`,
      { provider: this.provider, reason: 'message-not-accepted', final: false },
      reason,
    )
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
