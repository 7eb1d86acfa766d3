/** The small types of the bot's public face: handlers, triggers, options, snapshots. */
import type { CoordinatorStatus } from '../contracts/coordinator.js'
import type { JournalRecord } from '../contracts/journal.js'
import type { ProviderState } from '../contracts/provider.js'
import type { TaskFunction } from '../scheduler/task-term.js'
import type { MessageContext } from './context.js'

export type {
  CatchUp,
  DurableTaskOptions,
  Leases,
  SchedulerOptions,
  TaskOptions,
} from '../scheduler/options.js'

/** What a message is compared with: a text (equal, case and surrounding space ignored) or a pattern. */
export type Trigger = string | RegExp | readonly (string | RegExp)[]

/** Handles a message. Its turn is held until what it returns has settled (T3). */
export type MessageHandler = (ctx: MessageContext) => unknown

/** Runs before routing, in the order declared; may change `ctx.body`, `ctx.type` and `ctx.lang`. */
export type MessageHook = (ctx: MessageContext) => unknown

export interface CommandOptions {
  /** True: also while a conversation waits, before the conversation sees the message. Default false. */
  interrupt?: boolean
}

export interface FlowOptions {
  /** Messages that enter the flow when no conversation is waiting. */
  on?: Trigger
}

/**
 * Runs every interval or at each occurrence of a cron expression. An error is reported through `error`; of a durable task
 * the occurrence is tried again, too.
 */
export type TaskHandler = TaskFunction

/** A task that was declared; `stop()` ends it. */
export interface Task {
  stop(): void
}

/** Whom `bot.send` writes to: a chat id, or a chat and one participant of it. */
export type Recipient = string | { chatId: string; participant?: string }

/** - `leader`, `follower`: of an exclusive transport under coordination; `shared`: every replica is connected. */
export type BotRole = 'leader' | 'follower' | 'shared'

export type BotStatus = 'idle' | 'starting' | 'running' | 'stopping' | 'stopped'

/** What readiness and liveness checks look at (N4). A snapshot: no I/O. */
export interface BotHealth {
  bot: string
  status: BotStatus
  role: BotRole
  /** The transport is connected, the coordinator reachable, and the bot not stopping. */
  ready: boolean
  provider: { id: string; state: ProviderState }
  /** Null without coordination. */
  coordinator: { replicaId: string; incarnation: string; status: CoordinatorStatus } | null
  /** Messages being handled or waiting on this replica. */
  inFlight: number
}

/** A message given up after `maxAttempts` (D3). */
export interface BotDeadLetter {
  key: string
  record: JournalRecord
  at: number
}

/** The dead letters of this bot's store; without a journal the list is empty and the rest answers false. */
export interface DeadLetters {
  /** @param limit default 100. */
  list(limit?: number): Promise<BotDeadLetter[]>
  /** Puts one back, with no attempts counted, and wakes its chat. */
  retry(key: string, id: string): Promise<boolean>
  discard(key: string, id: string): Promise<boolean>
}
