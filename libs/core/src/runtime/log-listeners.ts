/**
 * For stores: who listens to which channels of a message log that is looked at now and then, and what they were told.
 * The store asks for the numbers of the newest entries; this tells those for whom there is something new.
 */
import type { Logger } from '../contracts/logger.js'

interface Listened {
  listeners: Set<() => void>
  /** Number of the newest entry that listeners were told of. */
  seen: number
}

export class LogListeners {
  private readonly channels = new Map<string, Listened>()

  constructor(private readonly logger: Logger) {}

  /** Channels that somebody listens to. */
  get names(): string[] {
    return [...this.channels.keys()]
  }

  get none(): boolean {
    return this.channels.size === 0
  }

  has(name: string): boolean {
    return this.channels.has(name)
  }

  /**
   * @param last number of the channel's newest entry: hints come for later ones.
   * @returns ends it. It says true if nobody listens to anything any more because of it.
   */
  add(name: string, last: number, onAppend: () => void): () => boolean {
    // One object a call: the same function may subscribe twice.
    const listener = (): void => onAppend()
    const listened = this.channels.get(name) ?? { listeners: new Set(), seen: last }
    this.channels.set(name, listened)
    listened.listeners.add(listener)
    return () => {
      listened.listeners.delete(listener)
      if (listened.listeners.size > 0 || this.channels.get(name) !== listened) return false
      this.channels.delete(name)
      return this.none
    }
  }

  /** Tells the listeners of those channels that have later entries. One that throws is logged. */
  tell(newest: Map<string, number>): void {
    for (const [name, last] of newest) {
      const listened = this.channels.get(name)
      if (!listened || last <= listened.seen) continue
      listened.seen = last
      for (const listener of listened.listeners) {
        try {
          listener()
        } catch (error) {
          this.logger.error({ err: error }, 'a subscriber of the log threw')
        }
      }
    }
  }

  clear(): void {
    this.channels.clear()
  }
}
