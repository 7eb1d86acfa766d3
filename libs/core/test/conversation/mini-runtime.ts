/**
 * A small stand-in for the runtime: one chat, its row in a store, turns one after the other, replicas that take them.
 * It keeps the rules that the engine relies on (port.ts) and nothing else, so that the engine's tests can say exactly
 * what was written when, and cut a span wherever they like.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { HookResults } from '../../src/contracts/checkpoint-store.js'
import { LeaseLostError, type LeaseLostReason } from '../../src/contracts/errors.js'
import type { Message, Outgoing } from '../../src/contracts/message.js'
import type { ChatState } from '../../src/contracts/state-store.js'
import { createConversations, FlowRegistry } from '../../src/conversation/index.js'
import type {
  ActScope,
  ConversationChange,
  ConversationEngine,
  ConversationHost,
  ConversationOptions,
  TurnScope,
  Unclaimed,
} from '../../src/conversation/port.js'
import { SeededRandom, type ManualClock } from '../../src/testing/index.js'
import { KEY, Span, type SpanOwner, type World } from './world.js'

export interface ReplicaOptions {
  coordinated?: boolean
  durable?: boolean
  options?: Partial<ConversationOptions>
}

export interface Handled {
  /** What routing did: `conversation`, `entered:<flow>`, or `routed`. */
  route: string
  span: Span
}

/** The scope of the calling code, as the bot finds it for `ctx.reply`. */
export const scopes = new AsyncLocalStorage<ActScope>()

export class Replica implements ConversationHost, SpanOwner {
  readonly random = new SeededRandom(1)
  readonly logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: this.noteWarning.bind(this),
    error: () => undefined,
  }
  readonly registry = new FlowRegistry()
  readonly engine: ConversationEngine
  readonly options: ConversationOptions
  readonly coordinated: boolean
  readonly durable: boolean
  readonly events: { name: string; outcome: string; reason?: string }[] = []
  readonly reported: unknown[] = []
  readonly warnings: string[] = []
  readonly routed: string[] = []
  private serving = 0
  beforeSend: ((content: Outgoing) => Promise<void>) | null = null
  beforeWrite: ((change: ConversationChange) => Promise<void>) | null = null

  constructor(
    readonly world: World,
    readonly name: string,
    define: (registry: FlowRegistry) => void,
    { coordinated = true, durable = false, options = {} }: ReplicaOptions = {},
  ) {
    this.coordinated = coordinated
    this.durable = durable
    this.options = {
      timeoutMs: null,
      forward: false,
      fallback: 'drop',
      notifyMessage: null,
      ttlMs: 300_000,
      maxAnswerBytes: 16_384,
      markers: false,
      ...options,
    }
    define(this.registry)
    this.engine = createConversations(this, this.registry, { maxCopies: 3 })
    this.engine.freeze()
  }

  get clock(): ManualClock {
    return this.world.clock
  }

  private noteWarning(_details: object, message: string): void {
    this.warnings.push(message)
  }

  serves(key: string): boolean {
    return key === KEY && this.serving > 0
  }

  wake(_key: string, _timerId: string, act: (scope: TurnScope) => Promise<void>): void {
    void this.turn(null, undefined, {}, async (span) => {
      await act(span)
      return 'timer'
    })
  }

  runIn<T>(act: ActScope, fn: () => T): T {
    return scopes.run(act, fn)
  }

  contextFor(scope: TurnScope, answer?: Unclaimed | null): unknown {
    return {
      message: answer?.original ?? scope.message,
      reply: async (content: Outgoing) => {
        const act = scopes.getStore()
        if (act !== undefined && act.revoked !== null) throw act.revoked
        return act?.send === undefined ? scope.send(content, null) : act.send(content)
      },
      enter: (name: string, state?: Record<string, unknown>) => this.engine.enter(scope, name, state),
      leave: () => this.engine.leave(scope),
    }
  }

  unclaimed(scope: TurnScope, { original }: Unclaimed): Promise<void> {
    return this.route(scope, original).then(() => undefined)
  }

  handedOver(event: { name: string; outcome: string; reason?: string }): void {
    const { name, outcome, reason } = event
    this.events.push({ name, outcome, ...(reason === undefined ? {} : { reason }) })
  }

  text(id: string): string {
    return `[${id}]`
  }

  report(error: unknown): void {
    this.reported.push(error)
  }

  /** Handles one message under a turn of its own. `cut`: settles when `settleMs` is over, or the turn is lost. */
  say(
    body: string | Message,
    how: {
      cut?: Promise<unknown>
      reason?: LeaseLostReason
      hooks?: HookResults
      finalAttempt?: boolean
    } = {},
  ): Promise<Handled> {
    const message = typeof body === 'string' ? this.world.message(body) : body
    return this.turn(message, how.hooks, how, async (span) => {
      if (await this.engine.accept(span)) return 'conversation'
      return this.route(span, message)
    })
  }

  private async route(scope: TurnScope, message: Message): Promise<string> {
    const flow = this.engine.triggeredBy(message)
    if (flow === null) {
      this.routed.push(message.body)
      return 'routed'
    }
    await this.engine.enter(scope, flow)
    return `entered:${flow}`
  }

  /** A turn in which a handler does what it likes. */
  handle(work: (span: Span) => Promise<unknown>): Promise<Handled> {
    return this.turn(this.world.message('handler'), undefined, {}, async (span) => {
      await work(span)
      return 'handler'
    })
  }

  /** Enters a flow in a chat of another key, whose row is of no interest, up to its first wait. */
  async elsewhere(key: string, flow: string): Promise<void> {
    const span = new Span(this, this.world.message(flow), undefined, undefined, false, false)
    Object.assign(span, { key, write: () => Promise.resolve(), stage: () => undefined })
    await this.engine.enter(span, flow)
    await this.engine.running(key)
    this.engine.committed(key, flow === 'memory' ? null : key)
  }

  private turn(
    message: Message | null,
    hooks: HookResults | undefined,
    how: { cut?: Promise<unknown>; reason?: LeaseLostReason; finalAttempt?: boolean },
    work: (span: Span) => Promise<string>,
  ): Promise<Handled> {
    const { world } = this
    const turn = world.tail.then(async () => {
      const elsewhere = world.holder !== this.name
      world.holder = this.name
      const span = new Span(
        this,
        message,
        hooks,
        message === null ? undefined : this.read(elsewhere),
        elsewhere,
        how.finalAttempt ?? false,
      )
      if (message === null && elsewhere && this.engine.localRevision(KEY) !== world.revision) {
        this.engine.drop(KEY, new LeaseLostError(KEY, 'superseded'))
      }
      this.serving++
      try {
        const route = await work(span)
        await this.settle(span, how)
        this.conclude(span)
        return { route, span }
      } finally {
        this.serving--
      }
    })
    world.tail = turn.catch(() => undefined)
    return turn
  }

  private read(elsewhere: boolean): ChatState | undefined {
    const local = this.engine.localRevision(KEY)
    if (!this.coordinated) return local === undefined && this.engine.persists ? this.world.state() : undefined
    return local !== undefined && !elsewhere ? undefined : this.world.state()
  }

  private async settle(span: Span, how: { cut?: Promise<unknown>; reason?: LeaseLostReason }): Promise<void> {
    const running = this.engine.running(KEY)
    if (running === null) return
    const cut = how.cut?.then(() => 'cut') ?? new Promise<never>(() => undefined)
    if ((await Promise.race([running, cut])) !== 'cut') return
    const { reason = 'settled' } = how
    const error = new LeaseLostError(KEY, reason)
    span.stop(reason === 'settled' || reason === 'stopped' ? 'cut' : 'lost', error)
    this.engine.suspend(KEY, error)
  }

  private conclude(span: Span): void {
    if (span.lost !== null) return this.engine.drop(KEY, span.lost)
    if (span.failed) this.report(span.failure)
    const again = span.recordId !== null && (span.failed || span.ackWithheld)
    const stores = !again || !span.failed || span.finalAttempt
    const revision = stores ? span.store('commit', span.staged) : this.world.revision
    if (again && !span.finalAttempt) return this.engine.drop(KEY, new LeaseLostError(KEY, 'revoked'))
    this.engine.committed(KEY, revision)
    if (span.message !== null) this.world.acked.push(span.message.id)
  }
}
