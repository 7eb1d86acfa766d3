/** The outbox of a memory store, synchronous (D2). Values are kept as JSON text. */
import type { OutboxEntry, SendKey } from '../contracts/outbox.js'
import type { Damage } from '../contracts/state-store.js'

type Outcome = Parameters<import('../contracts/outbox.js').Outbox['settle']>[2]

export class OutboxData {
  private readonly chats = new Map<string, Map<SendKey, string>>()

  /** @param damaged takes what cannot be read; without it such an entry is left out. */
  entries(chatKey: string, damaged: Damage[] = []): OutboxEntry[] {
    return [...(this.chats.get(chatKey) ?? [])].flatMap(([key, json]) => {
      try {
        return [JSON.parse(json) as OutboxEntry]
      } catch (error) {
        damaged.push({ what: 'outbox', key: `${chatKey} ${key}`, error: String(error) })
        return []
      }
    })
  }

  /** Writes entries. One that is known to be sent is not undone by an older view of the same content. */
  write(chatKey: string, entries: readonly string[]): void {
    if (entries.length === 0) return
    const chat = this.chats.get(chatKey) ?? new Map<SendKey, string>()
    this.chats.set(chatKey, chat)
    for (const json of entries) {
      const entry = JSON.parse(json) as OutboxEntry
      const known = chat.get(entry.key)
      const before = known === undefined ? undefined : (JSON.parse(known) as OutboxEntry)
      if (before?.status === 'sent' && before.hash === entry.hash) continue
      chat.set(entry.key, json)
    }
  }

  forget(chatKey: string, keys: readonly SendKey[]): void {
    const chat = this.chats.get(chatKey)
    for (const key of keys) chat?.delete(key)
    if (chat?.size === 0) this.chats.delete(chatKey)
  }

  /** `sent` is a fact and replaces anything; nothing replaces it. */
  settle(chatKey: string, key: SendKey, outcome: Outcome): void {
    const chat = this.chats.get(chatKey)
    const known = chat?.get(key)
    if (!chat || known === undefined) return
    const entry = JSON.parse(known) as OutboxEntry
    if (entry.status === 'sent') return
    const { error: _error, ...rest } = entry
    chat.set(key, JSON.stringify({ ...rest, ...outcome }))
  }
}
