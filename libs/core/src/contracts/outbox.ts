/**
 * The outbox: what a handler sends, so that a repeated step does not send twice (D2).
 * Intents are written as part of a commit or a write under the turn (state-store.ts); settling is here.
 */
import type { OutgoingContent, Sent } from './message.js'

/**
 * Names one send for ever: `r:<record>/<step>/<visit>/<ordinal>` for messages, `t:<revision>/<timer>/<ordinal>`
 * for timers.
 */
export type SendKey = string

export interface OutboxEntry {
  v: 1
  key: SendKey
  /** Hash of the content: a repeated step that says something else is a new send. */
  hash: string
  content: OutgoingContent
  status: 'intended' | 'sent' | 'failed' | 'uncertain'
  sent?: Sent
  error?: string
}

export abstract class Outbox {
  /** Every entry of the chat that is still kept, for a turn that repeats work. */
  abstract entries(chatKey: string): Promise<OutboxEntry[]>
  /**
   * Notes what became of a send. `sent` is a fact and accepted from any fence and over any status; others never
   * replace `sent`. Idempotent.
   */
  abstract settle(
    chatKey: string,
    key: SendKey,
    outcome: { status: 'sent'; sent: Sent } | { status: 'failed' | 'uncertain'; error: string },
  ): Promise<void>
}
