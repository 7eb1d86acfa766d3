/** What a turn is taken for. */
import { ProviderError } from '../contracts/errors.js'
import type { Message } from '../contracts/message.js'
import type { TurnScope } from '../conversation/port.js'

export type Work =
  | { kind: 'message'; message: Message }
  /** With durability: whatever record is the oldest; if there is none, an appointment that is over (ADR 8). */
  | { kind: 'wake' }
  | { kind: 'timer'; id: string; act: (scope: TurnScope) => Promise<void> }

/** Journalled messages are plain JSON. */
export function withoutRaw(message: Message): Message {
  if (message.raw === undefined) return message
  const { raw: _raw, ...rest } = message
  return rest
}

/** All of them would be one message: deduplicated by it, and by it recorded. */
export function withoutId(provider: string): ProviderError {
  return new ProviderError(
    `Provider "${provider}" handed in a message whose id is empty: it was not accepted. Give every message the platform's id, or one that is made up.`,
    { provider, reason: 'message without id', final: false },
  )
}
