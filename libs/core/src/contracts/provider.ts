/**
 * What a transport must provide. One provider object serves one account of one platform on this replica.
 *
 * Rules that the runtime relies on (the provider conformance suite checks them):
 * - `id` is `kind:account` (`baileys:tienda`), the same on every replica.
 * - It normalises, never answers its own messages, and hands each inbound message to `sink.message` in the
 *   order the platform delivered it.
 * - `start` twice without `stop` is one connection; `stop` during `start` ends in `closed`; `stop` is idempotent;
 *   start → stop → start works. After `signal` aborts or `stop` was called no socket is opened, ever: reconnect
 *   timers check (scenario 20).
 * - Failures to send are `SendError`s that say retryable, final or uncertain.
 */
import type { Clock, Random } from './clock.js'
import type { Logger } from './logger.js'
import type { Message, OutgoingContent, Sent } from './message.js'
import type { MessageLog } from './message-log.js'

/** What arrives from a platform as a message, or as part of one. */
export type InboundFeature =
  | 'text'
  | 'media'
  | 'button replies'
  | 'list replies'
  | 'commands'
  | 'reactions'
  | 'quotes'
  | 'edits'
  | 'locations'
  | 'contacts'
  | 'mentions'
  | 'threads'
  | 'groups'

/** What can be sent, or told, to a platform. */
export type OutboundFeature =
  | 'text'
  | 'media'
  | 'buttons'
  | 'lists'
  | 'templates'
  | 'embeds'
  | 'reactions'
  | 'quotes'
  | 'edits'
  | 'typing'
  | 'read marks'
  | 'threads'

export interface ProviderCapabilities {
  /** True: the platform allows one connection an account, so one replica connects and the others stand by (P1). */
  exclusiveSession?: boolean
  buttons?: boolean
  list?: boolean
  media?: boolean
  groups?: boolean
  /** What to do with a send whose fate is unknown: leave it (`skip`, default) or send again (`resend`). */
  uncertainSends?: 'skip' | 'resend'
  /** For people and for the table of transports in the documents; the runtime does not look at them. */
  receives?: readonly InboundFeature[]
  sends?: readonly OutboundFeature[]
}

export type ProviderState =
  | { status: 'connecting' }
  | { status: 'open' }
  /** `final`: it will not reconnect by itself (logged out, session taken by another, bad token). */
  | { status: 'closed'; reason: string; final?: boolean }

/** The runtime's side of a started provider. */
export interface ProviderSink {
  /**
   * Hands over one inbound message. Resolves when the platform may be told "received": with durability once
   * the journal has it, without once its ticket is taken. Rejects if it could not be accepted (answer 503, so
   * that the platform delivers again). Never waits for the handler (scenario 17).
   */
  message(message: Message): Promise<void>
  /** Every change of the connection, in order. */
  state(state: ProviderState): void
  /** A pairing code or QR to show the operator. */
  pairing(pairing: { kind: 'qr' | 'code'; value: string }): void
  /** Something went wrong that no caller is waiting for. */
  error(error: unknown): void
  readonly logger: Logger
  readonly clock: Clock
  readonly random: Random
  /** Fence of `provider:<id>` on an exclusive transport under coordination: guards what the provider stores. */
  readonly fence?: number
  /** A log shared by the replicas, if the store has one: for transports whose clients may sit on any replica. */
  readonly log?: MessageLog
}

/** A webhook call, free of any framework. Header names are lower case; `rawBody` is what was signed. */
export interface WebhookRequest {
  method: string
  headers: Readonly<Record<string, string | string[] | undefined>>
  query: Readonly<Record<string, string | undefined>>
  rawBody: Uint8Array
}

export interface WebhookResponse {
  status: number
  body?: string
  headers?: Record<string, string>
}

/** A request for a page that the transport serves itself, free of any framework. Header names are lower case. */
export interface PageRequest {
  method: string
  /** Path with or without a query. */
  path: string
  headers?: Readonly<Record<string, string | string[] | undefined>>
}

export interface PageResponse {
  status: number
  headers: Record<string, string>
  body: string | Uint8Array
}

/** An HTTP server, or anything that emits `upgrade` as `node:http`'s does (whose types contracts do not import: `any`). */
export interface UpgradeServer {
  // oxlint-disable-next-line no-explicit-any
  on(event: 'upgrade', listener: (...upgrade: any[]) => void): any
  // oxlint-disable-next-line no-explicit-any
  off(event: 'upgrade', listener: (...upgrade: any[]) => void): any
  listenerCount(event: 'upgrade'): number
}

export interface SendTarget {
  chatId: string
  participant?: string
}

export interface SendOptions {
  /** Aborts when the turn on whose behalf this is sent is lost: do not start a request after it. */
  signal?: AbortSignal
  /** The same for every attempt of one send; platforms that can deduplicate are given it. */
  idempotencyKey?: string
  /**
   * Id of the inbound message in whose turn this is sent, if any: for platforms where some messages are answered in
   * a way of their own (Discord's slash commands). A hint: the send must also work where this is not known.
   */
  inboundId?: string
}

export interface Provider {
  readonly id: string
  readonly capabilities: ProviderCapabilities
  readonly state: ProviderState
  /**
   * Called when the bot starts, on standbys too: loads what starting will need (a large library), so that a takeover
   * does not wait for it. Opens no connection. What fails here is said again by `start`. Idempotent.
   */
  prepare?(): Promise<void>
  /**
   * Starts connecting; resolves once the attempt is under way (not when it is open), rejects with a
   * `ConfigError` or `ProviderError` for what can never work. Reports through `sink`.
   * @param signal aborts when the leadership is lost: the provider disconnects at once, and makes no further call of
   *   its own. With a `CoordinationUnavailableError` as reason it is an orderly stop: the account is this replica's
   *   until `stop` has resolved, so that what was accepted may still be confirmed to the platform.
   */
  start(sink: ProviderSink, signal: AbortSignal): Promise<void>
  /** Disconnects and waits until nothing of it runs. Idempotent. */
  stop(): Promise<void>
  /**
   * Sends one message. Not idempotent. The calls of a bot for one chat come one after the other, so none may wait for
   * something that is sent to that chat through the bot. A call is not waited for once its turn is lost, nor for ever.
   * @throws SendError
   */
  send(to: SendTarget, content: OutgoingContent, options?: SendOptions): Promise<Sent>
  /** Present on webhook transports. Bounds the body, checks the signature in constant time, and answers 4xx
   * itself for what is not acceptable; never throws. */
  handle?(request: WebhookRequest): Promise<WebhookResponse>
  /** Present on transports with pages of their own (web chat). @returns null for what is not theirs; may be called
   * before `start`. */
  http?(request: PageRequest): PageResponse | null
  /** Present on WebSocket transports: takes their upgrades from an HTTP server and leaves all others alone. May be
   * called before `start` and for several servers. @returns what undoes it. */
  attach?(server: UpgradeServer): () => void
}
