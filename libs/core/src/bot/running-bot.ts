/** One run of a bot, from start to stop: puts the parts of the runtime together and drives their life. */
import { DeadLetterError, LeaseLostError } from '../contracts/errors.js'
import { parseChatKey } from '../kernel/chat-key.js'
import { createConversations, type FlowRegistry } from '../conversation/index.js'
import type { ConversationEngine, ConversationHost, TurnScope } from '../conversation/port.js'
import { runInScope } from '../runtime/act-scope.js'
import { isStateStore } from '../runtime/chat-access.js'
import { drain, type Drained } from '../runtime/drain.js'
import { Inbox, type InboxOptions } from '../runtime/inbox.js'
import { JournalSweep } from '../runtime/journal-sweep.js'
import { localTurn } from '../runtime/local-turn.js'
import { ProviderSession } from '../runtime/provider-session.js'
import { SendGate } from '../runtime/send-gate.js'
import { SpanFactory } from '../runtime/span-factory.js'
import type { Span } from '../runtime/span.js'
import { TurnRunner } from '../runtime/turn-runner.js'
import { unlessAborted } from '../runtime/within.js'
import { Dispatcher, userIdOf } from './dispatcher.js'
import type { EventHub } from './events.js'
import { letGo } from './let-go.js'
import { noteDrained, noteStandby } from './life-notes.js'
import type { ResolvedOptions } from './options.js'
import type { Router } from './router.js'
import { warnAtStart } from './start-warnings.js'
import { openHeld, takeHold } from './take-hold.js'
import { TextCatalogue } from './texts.js'

export interface Definitions {
  registry: FlowRegistry
  router: Router
  /** There are flows or conversations. */
  converses: boolean
  usesUser: boolean
}

/** Without coordination there is no lease to measure by. */
const SWEEP_ALONE_MS = 5000

export class RunningBot {
  readonly session: ProviderSession
  readonly gate: SendGate
  readonly inbox: Inbox
  readonly engine: ConversationEngine
  readonly spans: SpanFactory
  private readonly dispatcher: Dispatcher
  private readonly sweep: JournalSweep | null
  private readonly shared: boolean
  private readonly incarnations = new Set<string>()
  private readonly texts: TextCatalogue
  private unsubscribe: () => void = () => undefined
  private lastFence = 0

  constructor(
    private readonly options: ResolvedOptions,
    private readonly definitions: Definitions,
    private readonly events: EventHub,
    onState: () => void,
  ) {
    const { store, coordinator } = options
    this.shared = coordinator !== null && coordinator.sharesBackendWith(store)
    this.texts = new TextCatalogue(options.texts, options.locale)
    this.engine = createConversations(this.conversationHost(), definitions.registry)
    this.session = this.makeSession(onState)
    this.gate = new SendGate({ ...options, assertMaySend: () => this.session.assertMaySend() })
    this.spans = this.makeSpans()
    this.dispatcher = this.makeDispatcher()
    this.inbox = new Inbox(this.inboxOptions())
    this.sweep = this.makeSweep()
  }

  /**
   * Connects store and coordinator, then the transport or the candidacy. If it fails, or `signal` aborts it, it undoes
   * itself first, as `stop` does. @throws what failed; the signal's reason
   * @param begun called once nothing can abort it any more.
   */
  async start(signal: AbortSignal, begun: (bot: this) => void): Promise<void> {
    const { coordinator, clock } = this.options
    const held = takeHold(this.options)
    try {
      await openHeld(this.options, held, signal)
      warnAtStart(this.options)
      if (coordinator !== null) this.unsubscribe = coordinator.onLost((lost) => this.turnLost(lost))
      await unlessAborted(signal, this.session.start())
      signal.throwIfAborted()
      this.sweep?.start()
      begun(this)
    } catch (error) {
      const since = clock.monotonic()
      const drained = await this.stop(Promise.resolve())
      if (!drained.finished || !drained.disconnected) noteDrained(this.options, drained, since)
      throw error
    }
  }

  /** Drains within `drainMs`, then lets go of everything. Never rejects. */
  async stop(besides: Promise<unknown>): Promise<Drained> {
    this.sweep?.stop()
    const { clock, drainMs, provider } = this.options
    const { inbox, spans, engine, session } = this
    const parts = { inbox, spans, engine, session, clock, drainMs, provider: provider.id, besides }
    const drained = await drain(parts)
    await this.release(drained.disconnected || session.role !== 'leader')
    return drained
  }

  /** The span that acts for the calling code, if it is one of this bot's. */
  owns(scope: TurnScope | null): scope is Span {
    return this.spans.live.has(scope as Span)
  }

  /** @param disconnected false: the transport of an account that this replica leads may still be connected. */
  private release(disconnected = true): Promise<void> {
    this.unsubscribe()
    const report = (error: unknown) => this.events.error(error)
    return letGo({ ...this.options, report, disconnected: disconnected ? null : this.session.stop() })
  }

  private conversationHost(): ConversationHost {
    const { clock, random, logger, conversation } = this.options
    return {
      clock,
      random,
      logger,
      options: conversation,
      serves: (key) => this.spans.serves(key),
      wake: (key, timerId, act) => this.wakeConversation(key, timerId, act),
      runIn: runInScope,
      contextFor: (scope, answer) => this.dispatcher.contextFor(scope as Span, answer),
      unclaimed: (scope, answer) => this.dispatcher.unclaimed(scope as Span, answer),
      handedOver: (event) => this.events.emit('coordination:handover', event),
      text: (id, lang, values) => this.texts.find(id, lang, values),
      report: (error) => this.events.error(error),
    }
  }

  /** T5. A former leader of an exclusive transport cannot speak: the chat is the new leader's, its copy is not. */
  private wakeConversation(key: string, id: string, act: (scope: TurnScope) => Promise<void>): void {
    if (this.session.maySend) {
      this.inbox.timer(key, id, act, () => this.engine.localRevision(key) !== undefined)
    } else this.engine.drop(key, new LeaseLostError(key, 'revoked'))
  }

  private makeSession(onState: () => void): ProviderSession {
    const { options, events } = this
    return new ProviderSession({
      ...options,
      coordinator: options.exclusive ? options.coordinator : null,
      log: options.store.log,
      message: (message) => this.inbox.accept(message),
      onLead: (name, fence) => events.emit('coordination:leader', { name, fence }),
      onFollow: (name, reason) => {
        onState()
        if (reason === 'standby') noteStandby(options)
        events.emit('coordination:follower', { name, reason })
      },
      onState: (state) => {
        onState()
        if (state.status === 'open') void this.sweep?.look()
        events.emit('provider:state', state)
      },
      onPairing: (pairing) => events.emit('provider:pairing', pairing),
      report: (error) => events.error(error),
    })
  }

  private makeSpans(): SpanFactory {
    const { options } = this
    return new SpanFactory({
      ...options,
      provider: options.provider.id,
      engine: this.engine,
      gate: this.gate,
      coordinated: options.coordinator !== null,
      shared: this.shared,
      graceMs: options.coordinator?.leaseMs ?? 0,
      resendUncertain: options.provider.capabilities?.uncertainSends === 'resend',
      readsChats: this.definitions.converses,
      isOwn: (incarnation) => this.isOwn(incarnation),
      localFence: () => this.localFence(),
      report: (error) => this.events.error(error),
    })
  }

  private makeDispatcher(): Dispatcher {
    const { options, definitions } = this
    return new Dispatcher({
      ...definitions,
      bot: options.name,
      provider: options.provider.id,
      store: options.store,
      engine: this.engine,
      gate: this.gate,
      events: this.events,
      texts: this.texts,
      logger: options.logger,
      now: () => options.clock.now(),
    })
  }

  private makeRunner(): TurnRunner {
    const { options, events } = this
    const { journal, maxAttempts, retryMs, maxRetryMs } = options
    return new TurnRunner({
      clock: options.clock,
      engine: this.engine,
      spans: this.spans,
      handler: this.dispatcher,
      settleMs: options.settleMs,
      attempts: journal
        ? { max: maxAttempts, delayMs: (attempts) => Math.min(retryMs * 2 ** attempts, maxRetryMs) }
        : null,
      report: (error) => events.error(error),
      leaseLost: (key, error) => events.emit('coordination:lease-lost', { key, reason: error.reason }),
      deadLettered: (key, record, error) =>
        events.error(new DeadLetterError(key, record.id, record.attempts + 1, error)),
      failRecord: async (key, id, fence, error, delay) => {
        return (await options.store.journal?.fail(key, id, fence, error, delay)) ?? true
      },
      wakeIn: (key, ms) => this.inbox.wakeIn(key, ms),
    })
  }

  private inboxOptions(): InboxOptions {
    const { options, definitions } = this
    const provider = options.provider.id
    const reads = definitions.converses || definitions.usesUser || options.journal
    return {
      ...options,
      provider,
      turns: options.coordinator?.turns ?? null,
      shared: this.shared,
      runner: this.makeRunner(),
      ...this.arrivalNotes(),
      readOptions: (message) =>
        reads
          ? {
              journal: options.journal,
              ...(definitions.usesUser ? { user: userIdOf(provider, message.from) } : {}),
            }
          : undefined,
      localTurn:
        options.coordinator === null && options.journal ? (key) => localTurn(key, this.localFence()) : null,
      maySend: () => this.canAnswer,
      report: (error) => this.events.error(error),
    }
  }

  /** Records are worked on where answers can go out: not on a standby, and not while the transport is down. */
  private get canAnswer(): boolean {
    return this.session.maySend && this.session.open
  }

  /** Where the ticket does not carry the arrival: the chat's row, and the journal (T2). */
  private arrivalNotes(): Pick<InboxOptions, 'arrive'> {
    const { store, coordinator, journal } = this.options
    if (this.shared || (coordinator === null && !journal)) return {}
    if (isStateStore(store)) return { arrive: (key, arrival) => store.arrive(key, arrival) }
    if (store.touchChat === undefined) return {}
    return { arrive: async (key, { messageId, timestamp }) => store.touchChat?.(key, messageId, timestamp) }
  }

  private makeSweep(): JournalSweep | null {
    const { store, clock, journal, coordinator, provider } = this.options
    if (!journal || store.journal === undefined) return null
    const leaseMs = coordinator?.leaseMs
    return new JournalSweep({
      journal: store.journal,
      provider: provider.id,
      clock,
      everyMs: leaseMs === undefined ? SWEEP_ALONE_MS : leaseMs / 3,
      idleMs: leaseMs ?? 0,
      maySend: () => this.canAnswer,
      wake: (key) => this.inbox.wake(key),
      report: (error) => this.events.error(error),
    })
  }

  /** A session that was lost and begun anew is still this process. */
  private isOwn(incarnation: string): boolean {
    const { coordinator } = this.options
    if (coordinator !== null) this.incarnations.add(coordinator.incarnation)
    return this.incarnations.has(incarnation)
  }

  private turnLost({ key, reason }: { key: string; reason: LeaseLostError['reason'] }): void {
    if (parseChatKey(key)?.provider !== this.options.provider.id) return
    this.events.emit('coordination:lease-lost', { key, reason })
  }

  /** Fences that grow across restarts of a single process, as those of a coordinator do (L4). */
  private localFence(): number {
    this.lastFence = Math.max(this.lastFence + 1, Math.floor(this.options.clock.now() * 1000))
    return this.lastFence
  }
}
