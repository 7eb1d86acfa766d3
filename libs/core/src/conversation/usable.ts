/** What the store holds of a chat's conversation, checked as far as going on from it looks at it (scenario 29). */
import type { ConversationMarker, FlowCheckpoint } from '../contracts/checkpoint-store.js'
import { StoreError } from '../contracts/errors.js'
import { stageOver } from './ledger.js'
import type { ConversationChange, ConversationHost, TurnScope } from './port.js'

/** A value that another version or a broken writer left must not stop the chat: it is reported and removed. */
export function usable(
  scope: TurnScope,
  host: ConversationHost,
): { checkpoint: FlowCheckpoint | null; marker: ConversationMarker | null } {
  const checkpoint = scope.state?.checkpoint ?? null
  const marker = scope.state?.marker ?? null
  const broken: ConversationChange = {}
  if (checkpoint !== null && !isCheckpoint(checkpoint)) broken.checkpoint = null
  if (marker !== null && !isMarker(marker)) broken.marker = null
  for (const what of Object.keys(broken)) {
    host.report(
      new StoreError(
        `The ${what} of "${scope.key}" cannot be read: it is removed and the chat goes on without.`,
        {
          store: 'checkpoints',
          operation: 'read',
          key: scope.key,
        },
      ),
    )
  }
  if (Object.keys(broken).length > 0) stageOver(scope, broken)
  return {
    checkpoint: broken.checkpoint === undefined ? checkpoint : null,
    marker: broken.marker === undefined ? marker : null,
  }
}

function isCheckpoint(value: Partial<FlowCheckpoint>): boolean {
  return (
    value.v === 1 &&
    typeof value.name === 'string' &&
    (value.kind === 'flow' || value.kind === 'async') &&
    (value.step === undefined || typeof value.step === 'string') &&
    Number.isSafeInteger(value.visit) &&
    isObject(value.state) &&
    (value.wait === undefined || isWait(value.wait)) &&
    (value.answer === undefined || isKept(value.answer)) &&
    (value.held === undefined || (Array.isArray(value.held) && value.held.every(isKept))) &&
    (value.recordId === undefined || typeof value.recordId === 'string') &&
    (value.initial === undefined || isObject(value.initial))
  )
}

function isWait(wait: Partial<NonNullable<FlowCheckpoint['wait']>>): boolean {
  return isObject(wait) && Number.isSafeInteger(wait.sends)
}

function isKept(kept: Partial<Record<'message' | 'recordId', unknown>>): boolean {
  return isObject(kept) && ('message' in kept ? isObject(kept.message) : typeof kept.recordId === 'string')
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isMarker(value: Partial<ConversationMarker>): boolean {
  return (
    value.v === 1 &&
    typeof value.name === 'string' &&
    (value.kind === 'flow' || value.kind === 'async') &&
    (value.step === undefined || typeof value.step === 'string') &&
    (value.initial === undefined || isObject(value.initial))
  )
}
