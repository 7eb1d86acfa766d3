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
 * @returns a pointer with durability, else the message itself (without the transport's own object) if it fits into
 * `maxBytes` of JSON, else null.
 */
export function keptForm(answer: Answer, durable: boolean, maxBytes: number): KeptAnswer | null {
  const hooks = answer.hooks === undefined ? {} : { hooks: answer.hooks }
  if (durable && answer.recordId !== null) return { recordId: answer.recordId, ...hooks }
  const { raw: _raw, ...message } = answer.original
  const kept: KeptAnswer = { message, ...hooks }
  return new TextEncoder().encode(JSON.stringify(kept)).length <= maxBytes ? kept : null
}

/** Reads a kept answer back. @returns null if it points to a record that is gone. */
export async function readKept(kept: KeptAnswer, scope: TurnScope): Promise<Answer | null> {
  if ('message' in kept) return makeAnswer(kept.message, kept.hooks, null)
  const message = await scope.findRecord(kept.recordId)
  return message === null ? null : makeAnswer(message, kept.hooks, kept.recordId)
}
