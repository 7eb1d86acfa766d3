/** What a `Bot` is built from: types only; checked in options.ts. Names are fixed by the public API (B2, C1, H). */
import type { Coordinator, Duration } from '../contracts/coordinator.js'
import type { Clock, Random } from '../contracts/clock.js'
import type { Logger } from '../contracts/logger.js'
import type { Message, Outgoing } from '../contracts/message.js'
import type { Provider } from '../contracts/provider.js'
import type { Store } from '../contracts/store.js'
import type { HandoverInfo } from '../conversation/port.js'
import type { SchedulerOptions } from '../scheduler/options.js'
import type { MessageContext } from './context.js'

export interface HandoverOptions {
  /** `'forward'`: flows without `.persistent()` leave ephemeral checkpoints too (H1). */
  flows?: 'forward'
  /** What becomes of what cannot be forwarded (H6). Default `'drop'`. */
  fallback?:
    'notify' | 'restart' | 'drop' | ((info: HandoverInfo, ctx: MessageContext) => boolean | Promise<boolean>)
  notifyMessage?: Outgoing
  /** At least `conversation.timeout`. Default: that, else 5 minutes. */
  ttl?: Duration
  /** Default 16,384. */
  maxAnswerBytes?: number
}

export interface CoordinationOptions {
  coordinator: Coordinator
  /** Longest wait of a message for its chat's turn. Default 2 minutes. */
  turnWaitMs?: Duration
  /** Longest a turn is held for a conversation step after its handler ended. Default 1 minute. */
  settleMs?: Duration
  /** Default `'auto'`: exclusive transports on the elected replica only (P1). */
  providerSession?: 'auto' | 'leader' | 'shared'
  /** A leader whose transport stays closed this long resigns (P3). Default 1 minute. */
  providerDownMs?: Duration
  handover?: HandoverOptions
}

export interface DurabilityOptions {
  /** Record inbound messages (D1). Default true. */
  journal?: boolean
  /** Deduplicate the sends of repeated steps (D2). Default true; false without the journal. */
  outbox?: boolean
  /** Failed attempts before a record goes to the dead letters (D3). Default 5. */
  maxAttempts?: number
  /** First back-off; doubles at each attempt up to `maxRetryMs`. Default 1 s. */
  retryMs?: Duration
  /** Default 1 minute. */
  maxRetryMs?: Duration
}

export interface BotConfig {
  provider: Provider
  /** Default: a new `MemoryStore`. */
  store?: Store
  coordination?: CoordinationOptions
  /** `true`: all defaults. */
  durability?: DurabilityOptions | boolean
  /** Tasks with an `id` are durable: each occurrence on one replica at a time, none forgotten (J1). `true`: all
   * defaults. */
  scheduler?: SchedulerOptions | boolean
  conversation?: {
    /** Default timeout of every wait. */
    timeout?: Duration
  }
  /** Names the bot in events, health and logs. Default `'default'`. */
  name?: string
  /** Language of the library's own texts where the chat's is unknown. Default `'en'`. */
  locale?: string
  /** Replaces texts of the library, by language and id (B5). */
  texts?: Record<string, Record<string, string>>
  logger?: Logger
  /**
   * When the writer's state (`ctx.user`) is read before a message is handled. `'auto'` (default): if a handler may
   * use it, as far as their code shows; `'always'`: set it where a handler hides its use.
   */
  userState?: 'auto' | 'always'
  /** Bounds `stop()`. Default 10 s. */
  drainMs?: Duration
  /**
   * Most messages of one chat that may wait or be worked on at this replica (scenario 35). More are refused: a webhook
   * answers 503 and the platform delivers them again; `error` tells the first one at once, then once a second how many
   * (`CoordinationUnavailableError`, why `overflow`, with `limit` and `refused`). Default 1,000.
   */
  maxWaitingPerChat?: number
  /** The same for all chats of this replica together. What waits is kept in memory: some 3 KB a message and its text.
   * Default 20,000. */
  maxWaiting?: number
  clock?: Clock
  random?: Random
}

/** Events of a bot; each payload also carries the bot's name. */
export interface BotEvents {
  'coordination:leader': { bot: string; name: string; fence: number }
  'coordination:follower': {
    bot: string
    name: string
    reason: 'standby' | 'lost' | 'resigned' | 'transport-down' | 'stopped'
  }
  'coordination:lease-lost': { bot: string; key: string; reason: string }
  'coordination:handover': {
    bot: string
    key: string
    name: string
    outcome: 'resumed' | 'forwarded' | 'notified' | 'restarted' | 'handled' | 'dropped'
    reason?: string
  }
  /** A pairing QR or code of the transport. */
  'provider:pairing': { bot: string; kind: 'qr' | 'code'; value: string }
  'provider:state': {
    bot: string
    status: 'connecting' | 'open' | 'closed'
    reason?: string
    final?: boolean
  }
  /** A message has been worked off, with the turn it was handled under. */
  'message:handled': {
    bot: string
    key: string
    message: Message
    fence: number | null
    previousHolder: string | null
    /** With durability: the message's place in its chat's order of arrival. */
    seq: number | null
  }
  /** Occurrences of a durable task, the first and the last of them, were left out: nobody ran them in time (J1). */
  'task:missed': { bot: string; id: string; from: Date; to: Date }
  error: { bot: string; error: unknown }
}
