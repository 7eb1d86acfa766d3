/** What handlers get (B2). */
import type { Logger } from '../contracts/logger.js'
import type { Message, MessageType, Outgoing, Sent } from '../contracts/message.js'

/**
 * The message being handled and what can be done about it. Every action rejects with `LeaseLostError` once the
 * chat's turn is lost (L2, T4).
 */
export abstract class MessageContext {
  /** The message as the transport gave it; hooks change `body`, `type` and `lang` of the context only. */
  abstract readonly message: Message
  abstract readonly chatId: string
  abstract readonly from: string
  abstract body: string
  abstract type: MessageType
  /** The chat's language, if known. */
  abstract lang: string | undefined
  abstract readonly isGroup: boolean
  /** The chat key of this message. */
  abstract readonly key: string
  /** State kept in the store per user. */
  abstract readonly user: Record<string, unknown>
  /** What the pattern that routed here matched. */
  abstract readonly match: RegExpMatchArray | null
  /** Of a command: what follows its name, trimmed. */
  abstract readonly args: string
  /** Aborts when the turn is lost. */
  abstract readonly signal: AbortSignal
  /** Fence of the turn; null without coordination. */
  abstract readonly fence: number | null
  /** Incarnation that held this chat before; null if unknown or without coordination. */
  abstract readonly previousHolder: string | null
  /** The bot's logger with this chat's particulars. */
  abstract readonly log: Logger

  abstract reply(content: Outgoing): Promise<Sent>
  abstract enter(name: string, state?: Record<string, unknown>): Promise<void>
  /** Ends the chat's conversation; false if there was none. */
  abstract leave(): Promise<boolean>
  abstract text(id: string, values?: Record<string, string | number>): string
}
