/** The journal of a memory store, synchronous: per chat, what is pending, acknowledged or dead (D1, D3). */
import type { Clock } from '../contracts/clock.js'
import type { DeadLetter, JournalRecord } from '../contracts/journal.js'
import type { Message } from '../contracts/message.js'
import { unreadableLetter } from '../kernel/unreadable-letter.js'

interface Row {
  id: string
  seq: number
  /** The message as JSON; null once it is not needed any more, and only its id is. */
  json: string | null
  attempts: number
  lastError: string | undefined
  status: 'pending' | 'acknowledged' | 'dead'
  /** Not to be worked on before. */
  dueAt: number
  /** When it was acknowledged or given up. */
  endedAt: number
}

interface ChatJournal {
  seq: number
  rows: Map<string, Row>
  pending: Set<Row>
  /** Acknowledged, and not forgotten yet: a checkpoint may point to it (H7). */
  kept: Row | null
}

export class JournalData {
  private readonly chats = new Map<string, ChatJournal>()
  private readonly withPending = new Set<string>()

  constructor(
    private readonly clock: Clock,
    private readonly dedupeMs: number,
  ) {}

  knows(key: string): boolean {
    return this.chats.has(key)
  }

  hasPending(key: string): boolean {
    return this.withPending.has(key)
  }

  record(key: string, message: Message): 'recorded' | 'duplicate' {
    const { raw: _raw, ...kept } = message
    const json = JSON.stringify(kept)
    const chat = this.chats.get(key) ?? {
      seq: 0,
      rows: new Map<string, Row>(),
      pending: new Set<Row>(),
      kept: null,
    }
    this.chats.set(key, chat)
    this.forgetOld(chat)
    if (chat.rows.has(message.id)) return 'duplicate'
    chat.seq += 1
    const row: Row = {
      id: message.id,
      seq: chat.seq,
      json,
      attempts: 0,
      lastError: undefined,
      status: 'pending',
      dueAt: this.clock.now(),
      endedAt: 0,
    }
    chat.rows.set(row.id, row)
    chat.pending.add(row)
    this.withPending.add(key)
    return 'recorded'
  }

  /** @throws Error if it cannot be read. */
  oldest(key: string): JournalRecord | null {
    const oldest = this.oldestRow(key)
    return oldest === undefined ? null : this.read(oldest)
  }

  oldestId(key: string): string | null {
    return this.oldestRow(key)?.id ?? null
  }

  private oldestRow(key: string): Row | undefined {
    let oldest: Row | undefined
    // In order of arrival but for dead letters that were put back.
    for (const row of this.chats.get(key)?.pending ?? []) {
      if (!oldest || row.seq < oldest.seq) oldest = row
    }
    return oldest
  }

  find(key: string, id: string): JournalRecord | null {
    const row = this.chats.get(key)?.rows.get(id)
    try {
      return row && row.json !== null ? this.read(row) : null
    } catch {
      return null // Whoever looks for it goes on without, and its own turn reports it.
    }
  }

  /**
   * Its message stays found until the next one of its chat is acknowledged: a kept answer may point to it.
   * @param pointer the record that the chat's checkpoint points to: not replaced by a later one.
   */
  acknowledge(key: string, id: string, pointer: string | null): void {
    const row = this.end(key, id, 'acknowledged')
    const chat = this.chats.get(key)
    if (!row || !chat) return
    const gone = chat.kept?.id === pointer ? row : chat.kept
    if (gone !== row) chat.kept = row
    if (gone !== null) gone.json = null
  }

  fail(key: string, id: string, error: string, retryMs: number | null): void {
    const row = this.chats.get(key)?.rows.get(id)
    if (row?.status !== 'pending') return
    row.attempts += 1
    row.lastError = error
    if (retryMs === null) this.end(key, id, 'dead')
    else row.dueAt = this.clock.now() + retryMs
  }

  /** Chats whose oldest record has been due for `idleMs`. */
  due(idleMs: number): string[] {
    const before = this.clock.now() - idleMs
    return [...this.withPending].filter((key) => {
      const oldest = this.oldestRow(key)
      return oldest !== undefined && oldest.dueAt <= before
    })
  }

  deadLetters(limit: number): DeadLetter[] {
    const letters: DeadLetter[] = []
    for (const [key, chat] of this.chats) {
      for (const row of chat.rows.values()) {
        if (letters.length >= limit) return letters
        if (row.status === 'dead') letters.push(this.readLetter(key, row))
      }
    }
    return letters
  }

  retry(key: string, id: string): boolean {
    const chat = this.chats.get(key)
    const row = chat?.rows.get(id)
    if (!chat || row?.status !== 'dead') return false
    row.status = 'pending'
    row.attempts = 0
    row.dueAt = this.clock.now()
    chat.pending.add(row)
    this.withPending.add(key)
    return true
  }

  discard(key: string, id: string): boolean {
    const row = this.chats.get(key)?.rows.get(id)
    if (row?.status !== 'dead') return false
    row.status = 'acknowledged'
    row.json = null
    row.endedAt = this.clock.now()
    return true
  }

  private end(key: string, id: string, status: 'acknowledged' | 'dead'): Row | null {
    const chat = this.chats.get(key)
    const row = chat?.rows.get(id)
    if (!chat || row?.status !== 'pending') return null
    row.status = status
    row.endedAt = this.clock.now()
    chat.pending.delete(row)
    if (chat.pending.size === 0) this.withPending.delete(key)
    return row
  }

  /** Acknowledged ids stay known for `dedupeMs`; dead letters, what is pending and what may be pointed to stay for good. */
  private forgetOld(chat: ChatJournal): void {
    const before = this.clock.now() - this.dedupeMs
    for (const row of chat.rows.values()) {
      if (row === chat.kept) continue
      if (row.status === 'acknowledged' && row.endedAt <= before) chat.rows.delete(row.id)
      else break
    }
  }

  private readLetter(key: string, row: Row): DeadLetter {
    try {
      return { key, record: this.read(row), at: row.endedAt }
    } catch (error) {
      return unreadableLetter(key, row.id, row.endedAt, String(error), row)
    }
  }

  private read(row: Row): JournalRecord {
    const waitMs = row.dueAt - this.clock.now()
    const record: JournalRecord = {
      v: 1,
      id: row.id,
      seq: row.seq,
      message: readMessage(row.json),
      attempts: row.attempts,
    }
    if (row.lastError !== undefined) record.lastError = row.lastError
    if (waitMs > 0 && row.status === 'pending') record.waitMs = waitMs
    return record
  }
}

/** @throws Error if it is no message. */
function readMessage(json: string | null): Message {
  const message = JSON.parse(json ?? 'null') as Partial<Message> | null
  const whole = [message?.id, message?.chatId, message?.body].every((part) => typeof part === 'string')
  if (!whole) throw new Error('it has not the form of a message')
  return message as Message
}
