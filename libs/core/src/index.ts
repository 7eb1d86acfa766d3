/** Public face of `@botmesh/core`. */
export * from './contracts/index.js'
export { parseDuration, describeValue } from './kernel/duration.js'
export { checkedFor, refuseUnknownOptions, nearestName, requireOneOf, requireText } from './kernel/options.js'
export { chatKeyOf, chatKeyPrefix, parseChatKey, type ChatAddress } from './kernel/chat-key.js'
export { systemClock, systemRandom } from './runtime/system-clock.js'
export { Bot } from './bot/bot.js'
import type { MessageContext } from './bot/context.js'
export { MessageContext } from './bot/context.js'
export { TaskContext } from './scheduler/task-context.js'

// For frameworks that host bots: whose code a wrapper runs, and holding on to what several bots share.
export { callsOnly } from './bot/uses-user.js'
export { beginUse, endUse, isIdle } from './runtime/shared-use.js'
export type * from './bot/config.js'
export type * from './bot/face.js'

// For transports: the life of a start, checks of a webhook, reading by a schema, ordered hand-over of a batch, reading
// a failed call.
export { SessionStarts, TransportSession, type TransportSessionParts } from './runtime/transport-session.js'
export { pause } from './runtime/pause.js'
export { within } from './runtime/within.js'
export { equalInConstantTime, headerOf, readJsonBody, webhookAnswer } from './runtime/webhook-request.js'
export { listOf, quickReader, type QuickReader } from './runtime/quick-read.js'
export {
  deliverInOrder,
  isOrderlyStop,
  type Delivery,
  type DeliveryOutcome,
} from './runtime/deliver-in-order.js'
export { wasNeverSent, networkCodeOf, networkReasonOf } from './runtime/network-failure.js'
export { readBounded } from './runtime/read-bounded.js'

// For driver authors: a coordinator is `new SessionCoordinator({ backend, … })` over an implementation of this port.
export * from './runtime/coordination-backend.js'
export {
  SessionCoordinator,
  COORDINATOR_OPTIONS,
  type CoordinatorOptions,
  type SessionCoordinatorOptions,
} from './runtime/session-coordinator.js'
// For store authors: a store of parts, its link to a server, its locks, its log's listeners; stored values, checked.
export { StoreOfParts, type StoreParts } from './runtime/store-of-parts.js'
export { StoreLink, type CallRules, type StoreLinkOptions } from './runtime/store-link.js'
export { LogListeners } from './runtime/log-listeners.js'
export { BackgroundSweep } from './runtime/background-sweep.js'
export { readStorePrefix } from './runtime/store-prefix.js'
export {
  readStoredCheckpoint,
  readStoredMarker,
  readStoredMessage,
  readStoredOutboxEntry,
  readStoredSend,
  readStoredUser,
  recordJson,
  type StoredSend,
} from './runtime/stored-values.js'
export { CheckedLocks, type CheckedLocksOptions } from './runtime/checked-locks.js'
export { keptRecordOf } from './kernel/kept-record.js'
export { unreadableLetter } from './kernel/unreadable-letter.js'
export { silentLogger } from './runtime/silent-logger.js'
export { LentLogger } from './runtime/lent-logger.js'
export { Backoff } from './runtime/backoff.js'

// Flows and conversations.
export {
  ConversationContext,
  Directive,
  FlowBuilder,
  StepContext,
  defineFlow,
  type AskOptions,
  type ConversationDefinition,
  type FlowBuilderOptions,
  type FlowDefinition,
  type FlowTrigger,
  type FormField,
  type HandlerContext,
  type Question,
  type StepDefinition,
  type Validator,
  type Verdict,
} from './conversation/index.js'
export type { HandoverInfo, HandoverOutcome } from './conversation/port.js'

// `c.ctx` and the `ctx` of conversations are the bot's context; the conversation room itself may not import it.
declare module './conversation/contexts.js' {
  interface ContextRegistry {
    context: MessageContext
  }
}

export { MemoryLog, MemoryStore, type MemoryLeases, type MemoryStoreOptions } from './memory/index.js'
