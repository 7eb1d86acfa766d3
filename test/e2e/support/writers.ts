/** New people who write to a bot, each in a chat of their own, and whether each is answered once. */
import { setTimeout as delay } from 'node:timers/promises'
import { waitFor } from '../../support/index.js'

const EVERY_MS = 30

export class Writers<Chat> {
  private asked: Chat[] = []
  private writing = false

  /** @param write lets someone new write, and says in which chat. @param answers how many that chat has got. */
  constructor(
    private readonly write: () => Chat | Promise<Chat>,
    private readonly answers: (chat: Chat) => number,
  ) {}

  /** Someone new writes; the bot's answer is awaited elsewhere. */
  async ask(): Promise<void> {
    this.asked.push(await this.write())
  }

  /** Someone new writes all the time. @returns what ends it, and waits for the last one. */
  keepAsking(everyMs = EVERY_MS): () => Promise<void> {
    this.writing = true
    const steady = this.go(everyMs)
    return () => {
      this.stop()
      return steady
    }
  }

  /** For the end of a test, also of one that failed. */
  stop(): void {
    this.writing = false
  }

  /** How many asked since the last time. */
  get waiting(): number {
    return this.asked.length
  }

  /** Those who asked since the last time: whoever takes them looks after them. */
  take(): Chat[] {
    return this.asked.splice(0)
  }

  /** Waits for those who asked since the last time. @throws Error that names who got more than one answer. */
  async areAnsweredOnce(): Promise<void> {
    const all = this.take()
    await waitFor(() => all.every((chat) => this.answers(chat) > 0), { what: `${all.length} are answered` })
    const others = all.filter((chat) => this.answers(chat) !== 1)
    if (others.length > 0) throw new Error(`Answered more than once: ${others.join(', ')}`)
  }

  private async go(everyMs: number): Promise<void> {
    for (; this.writing; await delay(everyMs)) await this.ask()
  }
}
