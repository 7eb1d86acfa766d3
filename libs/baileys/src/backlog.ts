/**
 * What WhatsApp has delivered over one connection and the bot has not taken yet, by number and by size. While the bot
 * refuses a message, everything behind it waits in this process: there is an end to that.
 */
export interface BacklogLimit {
  messages: number
  bytes: number
}

export const DEFAULT_BACKLOG: BacklogLimit = { messages: 1000, bytes: 8 * 1024 * 1024 }

export class Backlog {
  private readonly sizes = new Map<object, number>()
  private total = 0

  constructor(private readonly most: BacklogLimit) {}

  /** @param item its identity; adding it again changes nothing. */
  add(item: object, bytes: number): void {
    if (this.sizes.has(item)) return
    this.sizes.set(item, bytes)
    this.total += bytes
  }

  remove(item: object): void {
    this.total -= this.sizes.get(item) ?? 0
    this.sizes.delete(item)
  }

  get messages(): number {
    return this.sizes.size
  }

  get bytes(): number {
    return this.total
  }

  get isFull(): boolean {
    return this.messages > this.most.messages || this.bytes > this.most.bytes
  }
}

/** Of Baileys' stanzas what counts here. Baileys is an optional peer: declarations that options lead to do without it. */
interface Stanza {
  content?: string | Uint8Array | readonly Stanza[]
}

/** What a message stanza holds in memory, nearly: its sealed contents. */
export function bytesOf({ content }: Stanza): number {
  if (content instanceof Uint8Array) return content.byteLength
  return Array.isArray(content) ? content.reduce((sum, part) => sum + bytesOf(part), 0) : 0
}
