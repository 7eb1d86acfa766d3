/**
 * Hands messages to the runtime in the order received within a chat, chats side by side. WhatsApp was told
 * "received" by Baileys already and will not deliver again, so a refusal is tried again here, for about a minute.
 */
import { Backoff, ProviderError, type Message, type ProviderSink } from '@botmesh/core'

const ATTEMPTS = 8

export class InboundQueue {
  private readonly chains = new Map<string, Promise<void>>()
  /** Of the pauses between attempts. */
  private readonly wakers = new Set<() => void>()
  private closed = false

  constructor(
    private readonly provider: string,
    private readonly sink: ProviderSink,
  ) {}

  push(message: Message): void {
    const before = this.chains.get(message.chatId)
    const chain = (
      before === undefined ? this.deliver(message) : before.then(() => this.deliver(message))
    ).finally(() => {
      if (this.chains.get(message.chatId) === chain) this.chains.delete(message.chatId)
    })
    this.chains.set(message.chatId, chain)
  }

  /** No further attempts; resolves when those under way have ended. */
  async close(): Promise<void> {
    this.closed = true
    for (const wake of this.wakers) wake()
    await Promise.all(this.chains.values())
  }

  /** Never rejects. */
  private async deliver(message: Message): Promise<void> {
    const pause = new Backoff(this.sink.random, 500, 15_000)
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.sink.message(message)
      } catch (error) {
        if (attempt >= ATTEMPTS || this.closed) {
          return this.sink.error(
            new ProviderError(
              `Message ${message.id} of chat ${message.chatId} could not be handed over and is lost: WhatsApp does not deliver twice.`,
              { provider: this.provider, reason: 'message-not-accepted', final: false },
              error,
            ),
          )
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
