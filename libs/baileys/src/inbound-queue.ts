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

  constructor(
    private readonly provider: string,
    private readonly sink: ProviderSink,
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

  retryNoMore(): void {
    this.closed = true
    for (const wake of this.wakers) wake()
  }

  /** No further attempts; resolves when those under way have ended. */
  async close(): Promise<void> {
    this.retryNoMore()
    await Promise.all(this.chains.values())
  }

  private async deliver(message: Message): Promise<boolean> {
    const pause = new Backoff(this.sink.random, 500, 15_000)
    for (let attempt = 1; ; attempt++) {
      try {
        await this.sink.message(message)
        return true
      } catch (error) {
        if (this.closed) return false
        if (attempt >= ATTEMPTS) {
          this.sink.error(
            new ProviderError(
              `Message ${message.id} of chat ${message.chatId} could not be handed over. WhatsApp was not told that it arrived: it delivers it again to the next connection, which is made now.`,
              { provider: this.provider, reason: 'message-not-accepted', final: false },
              error,
            ),
          )
          return false
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
