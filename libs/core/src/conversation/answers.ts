/** Answers: a message as the hooks left it, where it came from, and the form in which a checkpoint keeps it (H7). */
import type { HookResults, KeptAnswer } from '../contracts/checkpoint-store.js'
import type { Message } from '../contracts/message.js'
import type { TurnScope } from './port.js'

export interface Answer {
  /** With what hooks made of it. */
  message: Message
  /** As it arrived, and the hooks' results beside it: what is kept. */
  original: Message
  hooks: HookResults | undefined
  /** With durability: its journal record. */
  recordId: string | null
  /** As a checkpoint has it. */
  kept?: KeptAnswer
}

/** @returns null for a timer's span. */
export function answerOf(scope: TurnScope): Answer | null {
  return scope.message === null ? null : makeAnswer(scope.message, scope.hooks, scope.recordId)
}

export function makeAnswer(
  original: Message,
  hooks: HookResults | undefined,
  recordId: string | null,
): Answer {
  return { message: hooks === undefined ? original : { ...original, ...hooks }, original, hooks, recordId }
}

/**
 * The form in which the answer of a step's first question is kept: as it was kept before; a pointer if the span is that of
 * its record, which stays found as long as the checkpoint points to it; else itself.
 * @param spanRecordId of the record that the span works on; null without durability.
 * @returns null if it is larger than `maxBytes` of JSON.
 */
export function answerForm(answer: Answer, spanRecordId: string | null, maxBytes: number): KeptAnswer | null {
  if (answer.kept !== undefined) return answer.kept
  const { recordId, hooks } = answer
  if (recordId === null || recordId !== spanRecordId) return wholeForm(answer, maxBytes)
  return hooks === undefined ? { recordId } : { recordId, hooks }
}

/**
 * The form in which a message is kept that waits behind such an answer: itself, without the transport's own object. A
 * pointer would not do: its record is acknowledged, and a store keeps the content of one of those only.
 * @returns null if it is larger than `maxBytes` of JSON: with durability it is not acknowledged then, and comes again.
 */
export function wholeForm({ original, hooks, recordId, kept }: Answer, maxBytes: number): KeptAnswer | null {
  if (kept !== undefined) return kept
  const { raw: _raw, ...message } = original
  const form: KeptAnswer = { message }
  if (recordId !== null) form.recordId = recordId
  if (hooks !== undefined) form.hooks = hooks
  return new TextEncoder().encode(JSON.stringify(form)).length <= maxBytes ? form : null
}

/** Reads a kept answer back. @returns null if it points to a record that is gone. */
export async function readKept(kept: KeptAnswer, scope: TurnScope): Promise<Answer | null> {
  const { hooks, recordId = null } = kept
  const message = 'message' in kept ? kept.message : await scope.findRecord(kept.recordId)
  return message === null ? null : { ...makeAnswer(message, hooks, recordId), kept }
}
