/**
 * The seam between the conversation engine (this folder) and the runtime that drives it (runtime/, bot/).
 * The runtime owns turns, stores and transports; the engine owns flows, steps, waits and what a checkpoint says.
 *
 * One message, from the grant on:
 *   1. The runtime opens a `TurnScope` (turn, chat state or the proof that the local copy is current).
 *   2. Routing: interrupting commands → `engine.accept` → commands → flow triggers (`engine.enter`) → hears → onMessage.
 *   3. When the handler has ended the runtime waits for `engine.running(key)`, at most `settleMs`; then it
 *      suspends what still runs (T4).
 *   4. The runtime commits what the engine staged (checkpoint or marker), the acknowledgement and the outbox, and
 *      releases; then `engine.committed` or `engine.drop`.
 * A timer of a conversation asks for a turn through `host.wake` and runs the same way from 3 on (T5).
 *
 * Construction: `new FlowRegistry()` (registry.ts) takes definitions (`bot.flow` is `registry.flow`, a Nest class is
 * `registry.add(defineFlow({…}))`); `createConversations(host, registry)` (engine.ts) is the engine.
 */
import type { Clock, Random } from '../contracts/clock.js'
import type { ConversationMarker, FlowCheckpoint, HookResults } from '../contracts/checkpoint-store.js'
import type { LeaseLostError } from '../contracts/errors.js'
import type { Logger } from '../contracts/logger.js'
import type { Message, Outgoing, Sent } from '../contracts/message.js'
import type { ChatState } from '../contracts/state-store.js'

/** What a conversation leaves in the store. `undefined`: unchanged, `null`: removed. */
export interface ConversationChange {
  /** Without `revision`: the scope numbers it. */
  checkpoint?: Omit<FlowCheckpoint, 'revision'> | null
  marker?: ConversationMarker | null
  /** Null: the timeout of the wait that the checkpoint tells of is being acted on, so nobody need look at the chat for
   * its sake any more (ADR 8). Has no effect beside a `checkpoint`, which replaces it. */
  appointment?: null
}

/** Names a send within its turn for the outbox: together with the record (or the revision and timer) for ever. */
export interface SendRef {
  step: string
  visit: number
  /** Counts the sends of this visit of this step, from 0. */
  ordinal: number
  /** The record that this send is an effect of, where it is not the scope's: a kept answer is worked off under the
   * turn of the message that woke it (H7), and its sends must meet the keys of the first attempt. */
  recordId?: string
}

/** One exclusive span of work on one chat, under one turn (or, without coordination, under the local queue). */
export interface TurnScope {
  readonly key: string
  /** What is being handled; null for a timer. */
  readonly message: Message | null
  /** With durability: the journal record of `message`. */
  readonly recordId: string | null
  readonly hooks: HookResults | undefined
  /** False: no coordination; nothing is fenced and only persistent flows are stored. */
  readonly coordinated: boolean
  /** Of its turn; null without one. */
  readonly fence?: number | null
  readonly durable: boolean
  /** The chat as the store had it at the opening; absent if the local copy was proved current instead. */
  readonly state: ChatState | undefined
  /** True if another holder was granted this chat since this replica last served it (T7): a copy that was never
   * stored is stale then, although the revision of the row is unchanged (K3). */
  readonly servedElsewhere?: boolean
  /** With durability: if this attempt fails the record goes to the dead letters, so a conversation that fails now is
   * ended in the store too (otherwise its checkpoint stays for the next attempt). */
  readonly finalAttempt?: boolean
  /** Aborts when this span may no longer act (turn lost, suspended, stopped); reason: LeaseLostError. */
  readonly signal: AbortSignal
  /** @throws LeaseLostError if this span may no longer act. No I/O. */
  assertLive(): void
  /** Sends to this chat. @throws LeaseLostError before, SendError after trying. */
  send(content: Outgoing, ref: SendRef | null): Promise<Sent>
  /**
   * Stores a change now, under the turn, and keeps the turn. Writes of one scope are chained in the order called.
   * @throws LeaseLostError (`superseded`) if a later holder has written.
   */
  write(change: ConversationChange): Promise<void>
  /** Leaves a change for the commit that ends this span; the last one wins, field by field. */
  stage(change: ConversationChange): void
  /** H8: the record must not be acknowledged, because an answer was consumed that no checkpoint holds. */
  withholdAck(): void
  /**
   * The conversation's code failed. The runtime reports it once. With durability and a record the attempt has
   * failed: it is counted, and nothing that was staged is committed unless it was the last one (the copy in memory is
   * gone already). Without, the span ends as usual. Called before `running` settles.
   */
  fail(error: unknown): void
  /** A journalled message by its record id (a kept answer that is a pointer); null if it is gone. */
  findRecord(recordId: string): Promise<Message | null>
}

/** Runs user code so that `ctx.reply`, `bot.send` and `c.*` made in its asynchronous scope find their TurnScope. */
export interface ActScope {
  /** The span that acts for this code now; a conversation's changes with every message that it gets. */
  current: TurnScope | null
  /** Once set, everything this code tries rejects with it, for ever. */
  revoked: LeaseLostError | null
  /** If set, `ctx.reply` goes through it rather than `current.send`, so that it is counted among the sends of its
   * step: not made again when the step is resumed (K1), and named for the outbox (D2). */
  send?: (content: Outgoing) => Promise<Sent>
}

/** The runtime's side. */
export interface ConversationHost {
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  /** C1, H1, H6 and BotConfig.conversation, checked and in milliseconds. */
  readonly options: ConversationOptions
  /** True while a span of this chat is open: it may have read nothing because there is a copy in memory, which is not let
   * go then for want of room. */
  serves(key: string): boolean
  /**
   * Asks for a turn of `key` for a timer. `act` runs under it only if this replica's copy is still current then;
   * otherwise the copy is dropped (`engine.drop`) and nothing is said to the user (T5).
   */
  wake(key: string, timerId: string, act: (scope: TurnScope) => Promise<void>): void
  /** Runs `fn` with `act` as the asynchronous scope of everything that it calls. */
  runIn<T>(act: ActScope, fn: () => T): T
  /** The context handed to flows and conversations (`MessageContext`): of `answer` where it is another message than that of
   * `scope`, such as a kept one (H7). */
  contextFor(scope: TurnScope, answer?: Unclaimed | null): unknown
  /** Handles a message that a conversation was given and ended without using: as one that no conversation claimed, in the
   * asynchronous scope of the span's handlers. Hooks have run. @throws what the handlers throw. */
  unclaimed(scope: TurnScope, answer: Unclaimed): Promise<void>
  handedOver(event: { key: string; name: string; outcome: HandoverOutcome; reason?: string }): void
  /** A text of the library in the chat's language (B5). */
  text(id: string, lang: string | undefined, values?: Record<string, string | number>): string
  /** Reports an error that no caller waits for. */
  report(error: unknown): void
}

/** As it arrived, and what hooks made of it. */
export interface Unclaimed {
  original: Message
  hooks: HookResults | undefined
}

export type HandoverOutcome = 'resumed' | 'forwarded' | 'notified' | 'restarted' | 'handled' | 'dropped'

/** What a fallback function is told (H6). */
export interface HandoverInfo {
  key: string
  name: string
  kind: 'flow' | 'async'
  reason: 'async' | 'changed' | 'state'
  step?: string
  state?: Record<string, unknown>
}

export interface ConversationOptions {
  /** Default timeout of a wait; null: none. */
  timeoutMs: number | null
  forward: boolean
  fallback: 'notify' | 'restart' | 'drop' | ((info: HandoverInfo, ctx: unknown) => boolean | Promise<boolean>)
  notifyMessage: Outgoing | null
  /** H1, already resolved: `handover.ttl`, else `conversation.timeout`, else 5 minutes. */
  ttlMs: number
  /** How much longer than the timeout of its wait an ephemeral checkpoint lives, so that the timeout finds it
   * (ADR 8), milliseconds. Default 0. */
  graceMs?: number
  /** Default 16,384. */
  maxAnswerBytes: number
  /** True if `handover` was configured: markers are left only then. */
  markers: boolean
}

/** The engine's side. */
export interface ConversationEngine {
  /** Checks and freezes all definitions. @throws ConfigError: a flow without steps, two of one name, a goto to an
   * unknown step where it can be seen, … */
  freeze(): void
  /** True if any flow stores checkpoints even without coordination: then a chat's state must be read. */
  readonly persists: boolean
  /** Confirmed revision of the copy in memory, null if it was never stored, undefined if there is no copy. */
  localRevision(key: string): string | null | undefined
  /**
   * Offers the scope's message to the chat's conversation: the local copy if `scope.state` is absent or its
   * revision equals the copy's, else what `scope.state` says (resume, hand-over fallback), dropping a stale copy.
   * Resolves when it is decided, not when the step has run. @returns true if the message was consumed.
   */
  accept(scope: TurnScope): Promise<boolean>
  /**
   * The appointment of the scope's checkpoint is over, and nobody has acted on it (ADR 8): ends the wait of a current
   * copy in memory with its WaitTimeoutError, else runs the step of the checkpoint with that error at its first
   * question. What cannot be resumed here is left to the chat's next message. Resolves when it is decided.
   */
  timeOut(scope: TurnScope): Promise<void>
  /** Drops the copy in memory if this span shows it to be stale (K3), whoever the message is for: an interrupting
   * command must not make a stale copy look as if it had been served here last. */
  discardStale(scope: TurnScope): void
  /** Name of the flow that this message triggers (`on`), if any. */
  triggeredBy(message: Message): string | null
  /** Enters a flow or conversation, leaving the present one. Resolves once it has begun (a persistent flow under
   * coordination: once it is stored, K1). @throws ConfigError for an unknown name. */
  enter(scope: TurnScope, name: string, initial?: Record<string, unknown>): Promise<void>
  /** Ends the chat's conversation without running more of it; true if there was one. */
  leave(scope: TurnScope): Promise<boolean>
  /** Settles (never rejects) when the chat's conversation waits again or has ended; null if nothing runs. */
  running(key: string): Promise<void> | null
  /** Stops what runs for this chat: its ActScope is revoked and the copy discarded (T4, K4). The change that the
   * suspension leaves (kept answer, H7) was written or staged before. `fence` as in `drop`. */
  suspend(key: string, error: LeaseLostError, fence?: number | null): void
  /** The span's commit landed: the copy in memory is current as of `revision`. */
  committed(key: string, revision: string | null): void
  /**
   * The copy in memory must not be used any more (stale, refused commit, lost turn). Its timers are cancelled.
   * @param fence of the turn that says so: a copy that a later turn of this replica has served is left alone, since a
   * turn that was lost may take long to find out what became of it.
   */
  drop(key: string, error: LeaseLostError, fence?: number | null): void
  /** Drops all copies and timers; checkpoints stay (H4). */
  stop(error: LeaseLostError): void
  /** How many copies are in memory. */
  readonly size: number
}
