/** What a conversation leaves, as effects of a commit: numbers its checkpoint, and makes or ends its appointment. */
import type { Effects } from '../contracts/state-store.js'
import type { ConversationChange } from '../conversation/port.js'
import { appointmentOf } from '../kernel/settle-policy.js'

export interface CheckpointRow {
  /** What the next write replaces. */
  revision: string | null
  /** A new revision. */
  next(): string
  /** With durability: timeouts of waits are kept in the store (ADR 8). */
  appointments: boolean
}

export function effectsOfChange(change: ConversationChange, row: CheckpointRow): Effects {
  const { checkpoint, marker, appointment } = change
  const effects: Effects = {}
  if (checkpoint !== undefined) {
    effects.expectedRevision = row.revision
    effects.checkpoint = checkpoint === null ? null : { ...checkpoint, revision: row.next() }
    const wakeInMs = row.appointments && checkpoint !== null ? appointmentOf(checkpoint) : null
    if (wakeInMs !== null) effects.wakeInMs = wakeInMs
  } else if (appointment === null && row.appointments) {
    effects.wakeInMs = null
  }
  if (marker !== undefined) effects.marker = marker
  return effects
}
