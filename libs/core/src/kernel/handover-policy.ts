/**
 * What becomes of a conversation that arrives at a replica without a live copy there: the decision table of the
 * hand-over (K1, H1–H7), as a pure function of what the store holds and what this replica's code defines.
 *
 * Where both are stored the checkpoint decides: a marker is only left by what could not be forwarded.
 */
import type { ConversationMarker, FlowCheckpoint } from '../contracts/checkpoint-store.js'

/** What this replica's code says of the conversation's name. */
export interface DefinitionFacts {
  kind: 'flow' | 'async'
  persistent: boolean
  /** Names of the steps, in order; empty for an asynchronous conversation. */
  steps: readonly string[]
  fingerprint: string
}

export interface StoredFacts {
  checkpoint: FlowCheckpoint | null
  marker: ConversationMarker | null
}

/**
 * How a flow goes on (K1, H7):
 * - `answer`: it waited on its step's first question; the step runs again and that question gets the message.
 * - `kept`: that question had its answer already; the step gets it, and the message waits for the next question.
 * - `start-over`: the step runs from its beginning and asks; the message that woke it is consumed.
 */
export type ResumeMode = 'answer' | 'kept' | 'start-over'

export type FallbackReason = 'async' | 'changed' | 'state'

export type ArrivalDecision =
  /** Nothing was in progress: the message is routed as any other. */
  | { act: 'route' }
  | {
      act: 'resume'
      mode: ResumeMode
      step: string
      outcome: 'resumed' | 'forwarded'
      /** H5: this replica does not store such flows, so what was stored is deleted. */
      forget: boolean
    }
  | { act: 'fallback'; reason: FallbackReason; step?: string }

/** @param forward `handover.flows` is `'forward'` here. @param definition of the stored name; null if unknown. */
export function decideArrival(
  stored: StoredFacts,
  definition: DefinitionFacts | null,
  forward: boolean,
): ArrivalDecision {
  const { checkpoint, marker } = stored
  if (checkpoint !== null) return decideCheckpoint(checkpoint, definition, forward)
  if (marker === null) return { act: 'route' }
  // A name that exists no more, or means another kind of conversation now, has changed, whatever it was left for.
  const reason = definition === null || definition.kind !== marker.kind ? 'changed' : marker.reason
  return { act: 'fallback', reason, ...stepOf(marker.step) }
}

function decideCheckpoint(
  checkpoint: FlowCheckpoint,
  definition: DefinitionFacts | null,
  forward: boolean,
): ArrivalDecision {
  const { step } = checkpoint
  if (definition === null || definition.kind !== checkpoint.kind) {
    return { act: 'fallback', reason: 'changed', ...stepOf(step) }
  }
  // The stack of an asynchronous function cannot be rebuilt from its name and state.
  if (checkpoint.kind === 'async') return { act: 'fallback', reason: 'async' }
  const same = checkpoint.fingerprint === definition.fingerprint
  const resumable =
    step !== undefined && definition.steps.includes(step) && (same || checkpoint.ephemeral !== true)
  if (!resumable) return { act: 'fallback', reason: 'changed', ...stepOf(step) }
  return {
    act: 'resume',
    mode: resumeMode(checkpoint),
    step,
    outcome: checkpoint.ephemeral === true ? 'forwarded' : 'resumed',
    forget: !definition.persistent && !forward,
  }
}

function resumeMode(checkpoint: FlowCheckpoint): ResumeMode {
  if (checkpoint.answer !== undefined) return 'kept'
  return checkpoint.wait?.question === 0 ? 'answer' : 'start-over'
}

function stepOf(step: string | undefined): { step?: string } {
  return step === undefined ? {} : { step }
}
