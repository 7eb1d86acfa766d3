/**
 * Checkpoints and markers of conversations: what another replica needs to go on (K1, H1, H6).
 * All values are JSON with a version field `v`.
 */
import type { Message } from './message.js'

/**
 * A message that a conversation was given and has not worked off (H7): itself, with the id of its journal record if it
 * has one, or a pointer to that record.
 */
export type KeptAnswer =
  { message: Message; recordId?: string; hooks?: HookResults } | { recordId: string; hooks?: HookResults }

/** What `before('message')` hooks did to a message; travels with it, hooks are not run again (H7). */
export interface HookResults {
  body?: string
  type?: Message['type']
  lang?: string
}

/** Where a conversation stands. Written whole, compare-and-set by `revision`. */
export interface FlowCheckpoint {
  v: 1
  /** Name of the flow or conversation. */
  name: string
  kind: 'flow' | 'async'
  /** The step to run on resumption; absent for asynchronous conversations. */
  step?: string
  /** How often this conversation has entered a step, this entry included: identifies sends of a repeated step. */
  visit: number
  /** `c.state`: plain JSON. */
  state: Record<string, unknown>
  /** The state the conversation was entered with, for `restart`. */
  initial?: Record<string, unknown>
  /** Present while it waits for an answer. */
  wait?: {
    /** Which question of the step, from 0. Only 0 is resumed without asking again (K1). */
    question: number
    /** How many sends of this step came before the wait: not made again on resumption at question 0. */
    sends: number
    timeoutMs?: number
  }
  /** H7: answer of the step's first question, given but not yet worked off. The only one that may be a pointer. */
  answer?: KeptAnswer
  /** H7: messages that woke a step with a kept answer: they answer the next questions, oldest first. */
  held?: KeptAnswer[]
  /** With durability, without a wait: the record under which the step began. Repeated, its sends meet those names. */
  recordId?: string
  /** Room for Z6: recorded answers and named effects of the current step or conversation, in order. */
  recorded?: unknown[]
  /** Fingerprint of the flow's definition (H2). */
  fingerprint: string
  /** True: expires `ttlMs` after its last write (H1). */
  ephemeral?: boolean
  ttlMs?: number
  /** Globally unique per write: `fence:n`. Chained: the next write names the one it replaces. */
  revision: string
}

/** Left by a conversation that cannot be forwarded, while it waits (H6). */
export interface ConversationMarker {
  v: 1
  name: string
  kind: 'flow' | 'async'
  reason: 'async' | 'state' | 'changed'
  step?: string
  initial?: Record<string, unknown>
  ttlMs?: number
}

/**
 * Checkpoints by chat key. The two conditional methods are optional for custom stores: without them only the
 * local fence protects, and the bot warns at start (K2).
 */
export abstract class CheckpointStore {
  /** The checkpoint, or null if there is none, it expired or was cleared. */
  abstract getCheckpoint(key: string): Promise<FlowCheckpoint | null>
  /** Unconditional write, for bots without coordination. */
  abstract setCheckpoint(key: string, checkpoint: FlowCheckpoint): Promise<void>
  /** Unconditional removal; idempotent. */
  abstract clearCheckpoint(key: string): Promise<void>
  /**
   * Writes if the stored revision is `expectedRevision` (null: none, or cleared, or expired) and no higher fence
   * has read or written this key. One atomic statement. Resent after a lost reply it answers true if its own
   * write (same `checkpoint.revision`) is what is stored.
   */
  setCheckpointIf?(
    key: string,
    checkpoint: FlowCheckpoint,
    expectedRevision: string | null,
    fence: number,
  ): Promise<boolean>
  /** The same for removal. Leaves a tombstone (fence, revision) that outlives any write in flight. */
  clearCheckpointIf?(key: string, expectedRevision: string | null, fence: number): Promise<boolean>
}
