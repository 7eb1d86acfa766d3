/** What a span is made of. */
import type { JournalRecord } from '../contracts/journal.js'
import type { Message } from '../contracts/message.js'
import type { OutboxEntry } from '../contracts/outbox.js'
import type { SendTarget } from '../contracts/provider.js'
import type { ChatState } from '../contracts/state-store.js'
import type { ChatAccess, TurnLike } from './chat-access.js'
import type { SendGate } from './send-gate.js'
import type { SpanOutbox } from './span-outbox.js'

export interface SpanInit {
  key: string
  target: SendTarget
  message: Message | null
  record: JournalRecord | null
  state: ChatState | undefined
  /** Revision of the checkpoint row that the next write replaces. */
  revision: string | null
  turn: SpanTurn | null
  coordinated: boolean
  durable: boolean
  servedElsewhere?: boolean
  finalAttempt?: boolean
  /** With durability: timeouts of waits are kept in the store (ADR 8). */
  appointments: boolean
  /** What new revisions begin with: the turn's fence, or a number of this process's own that no other span has. */
  epoch: () => number
  access: ChatAccess
  gate: SendGate
  outbox: SpanOutbox | null
  findRecord(key: string, recordId: string): Promise<Message | null>
  ended(): void
}

/** What a span needs of its turn. */
export type SpanTurn = TurnLike & { readonly signal?: AbortSignal; readonly previousHolder?: string | null }

/** Asked for by few spans, and then always the same. */
export function once(make: () => number): () => number {
  let made: number | undefined
  return () => (made ??= make())
}

/** Stand in for entries that cannot be read, so that the commit drops them. */
export function unreadableEntries(state: ChatState | undefined): OutboxEntry[] {
  const damaged = state?.damaged?.filter(({ what }) => what === 'outbox') ?? []
  return damaged.map(({ key }) => {
    const name = key.slice(key.indexOf(' ') + 1)
    return { v: 1, key: name, hash: '', content: {}, status: 'failed' }
  })
}
