/** `bot.deadLetters`: the journal's dead letters, or none (D3). */
import type { Store } from '../contracts/store.js'
import type { BotDeadLetter, DeadLetters } from './face.js'

export class JournalDeadLetters implements DeadLetters {
  constructor(
    private readonly store: Store,
    private readonly wake: (key: string) => void,
  ) {}

  async list(limit = 100): Promise<BotDeadLetter[]> {
    return (await this.store.journal?.deadLetters(limit)) ?? []
  }

  async retry(key: string, id: string): Promise<boolean> {
    const found = (await this.store.journal?.retry(key, id)) ?? false
    if (found) this.wake(key)
    return found
  }

  async discard(key: string, id: string): Promise<boolean> {
    return (await this.store.journal?.discard(key, id)) ?? false
  }
}
