/** What a turn is taken for. */
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
