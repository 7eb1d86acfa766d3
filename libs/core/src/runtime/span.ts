/**
 * One exclusive span of work on one chat: what a handler, a step or a timer acts through (`TurnScope`).
 *
 * States: live → ended (its commit was made: what is sent later is no part of any turn)
 *         live → cut (T4: its step was stopped, or the bot; what was staged before is still committed)
 *         live or cut → lost (the turn is gone: nothing is written any more)
 * In cut and lost everything tried rejects, for ever.
 */
import type { FlowCheckpoint, HookResults } from '../contracts/checkpoint-store.js'
import type { Clock } from '../contracts/clock.js'
import { LeaseLostError } from '../contracts/errors.js'
import type { JournalRecord } from '../contracts/journal.js'
import type { Message, Outgoing, OutgoingContent, Sent } from '../contracts/message.js'
import type { SendTarget } from '../contracts/provider.js'
import type { ChatState, CommitResult, Effects } from '../contracts/state-store.js'
import type { ActScope, ConversationChange, SendRef, TurnScope } from '../conversation/port.js'
import { effectsOfChange } from './span-effects.js'
import type { SpanInit } from './span-init.js'
import type { SpanOutbox } from './span-outbox.js'

/** Longest a turn is held for a send that was begun and whose transport does not answer. */
const SEND_GRACE_MS = 10_000

export class Span implements TurnScope {
  readonly key: string
  readonly target: SendTarget
  readonly record: JournalRecord | null
  readonly recordId: string | null
  readonly coordinated: boolean
  readonly durable: boolean
  readonly state: ChatState | undefined
  readonly servedElsewhere: boolean
  readonly finalAttempt: boolean
  readonly fence: number | null
  readonly previousHolder: string | null
  readonly outbox: SpanOutbox | null
  message: Message | null
  hooks: HookResults | undefined
  /** The scope of handlers and hooks; conversations have scopes of their own. */
  readonly act: ActScope
  /** Set by the bot: the context that handlers of this span get. */
  context: unknown
  /** Set if a handler or a conversation failed. */
  failure: { error: unknown; of: 'handler' | 'conversation' } | undefined
  lostBy: LeaseLostError | null = null
  cutBy: LeaseLostError | null = null
  /** True while a handler runs: only then does a stop take everything away. */
  handling = true
  ackWithheld = false
  /** True once a conversation was touched: its copy in memory may be ahead of the store. */
  touched = false

  private sending = 0
  private onIdle: (() => void) | undefined
  private onStopped: (() => void) | undefined
  private ended = false
  private controller: AbortController | undefined
  private tail: Promise<unknown> | undefined
  private revision: string | null
  private staged: ConversationChange | undefined
  /** The checkpoint that it wrote last. */
  private stored: ConversationChange['checkpoint']
  private written = 0
  private readonly onLost: (() => void) | undefined

  constructor(private readonly init: SpanInit) {
    this.key = init.key
    this.target = init.target
    this.message = init.message
    this.record = init.record
    this.recordId = init.record?.id ?? null
    this.hooks = init.record?.hooks
    this.state = init.state
    this.coordinated = init.coordinated
    this.durable = init.durable
    this.servedElsewhere = init.servedElsewhere ?? false
    this.finalAttempt = init.finalAttempt ?? false
    this.fence = init.turn?.fence ?? null
    this.previousHolder = init.turn?.previousHolder ?? null
    this.outbox = init.outbox
    this.revision = init.revision
    this.act = { current: this, revoked: null }
    const signal = init.turn?.signal
    if (signal !== undefined) {
      this.onLost = () => this.revoke(asLeaseLost(signal.reason, this.key))
      if (signal.aborted) this.onLost()
      else signal.addEventListener('abort', this.onLost, { once: true })
    }
  }

  /** Made only if somebody asks: most messages need none. */
  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController()
      const stopped = this.lostBy ?? this.cutBy
      if (stopped !== null) this.controller.abort(stopped)
    }
    return this.controller.signal
  }

  get live(): boolean {
    return this.lostBy === null && this.cutBy === null && !this.ended
  }

  /** True after an orderly end: what is sent then is no part of any turn. */
  get over(): boolean {
    return this.ended && this.lostBy === null && this.cutBy === null
  }

  assertLive(): void {
    if (this.lostBy !== null) throw this.lostBy
    if (this.cutBy !== null) throw this.cutBy
    if (this.ended) throw new LeaseLostError(this.key, 'settled', this.fenceDetail())
    this.init.turn?.assertHeld()
  }

  /** The turn is gone. The first reason stays. */
  revoke(error: LeaseLostError): void {
    if (this.lostBy !== null) return
    this.lostBy = error
    this.silence(error)
  }

  /** The turn is still held, but this span may do nothing more than commit what it staged. */
  cut(error: LeaseLostError): void {
    if (this.lostBy !== null || this.cutBy !== null) return
    this.cutBy = error
    this.silence(error)
  }

  /** A drain's last word: an unfinished handler leaves nothing, a conversation what it staged (H7). */
  stop(error: LeaseLostError): void {
    if (this.handling) this.revoke(error)
    else this.cut(error)
  }

  /** Calls `fn` once when the span is cut or lost; at once if it is already. */
  whenStopped(fn: () => void): void {
    if (this.lostBy !== null || this.cutBy !== null) fn()
    else this.onStopped = fn
  }

  private silence(error: LeaseLostError): void {
    this.act.revoked = error
    this.controller?.abort(error)
    this.onStopped?.()
  }

  /** The orderly end, once the commit is made. */
  end(): void {
    this.ended = true
    this.act.current = null
    if (this.onLost !== undefined) this.init.turn?.signal?.removeEventListener('abort', this.onLost)
    this.init.ended()
  }

  send(content: Outgoing, ref: SendRef | null): Promise<Sent> {
    return this.sendTo(this.target, content, ref)
  }

  /** Sends to this chat or another one, as an effect of this span. */
  async sendTo(target: SendTarget, content: Outgoing, ref: SendRef | null): Promise<Sent> {
    this.assertLive()
    const outgoing: OutgoingContent = typeof content === 'string' ? { text: content } : content
    this.sending++
    try {
      return await (this.init.outbox === null
        ? this.init.gate.deliver(target, outgoing, this.guard())
        : this.init.outbox.send(this, target, outgoing, ref))
    } finally {
      if (--this.sending === 0) this.onIdle?.()
    }
  }

  /** What the gate checks right before each attempt, and what cuts its waits short. */
  guard() {
    return {
      // What was begun in the turn may have had to wait for the sends before it until after its orderly end.
      assertLive: () => void (this.over || this.assertLive()),
      ...(this.coordinated ? { signal: this.signal } : {}),
      ...(this.message === null ? {} : { inboundId: this.message.id }),
    }
  }

  write(change: ConversationChange): Promise<void> {
    this.touched = true
    return this.chain(async () => {
      const result = await this.init.access.write(this.conversationEffects(change))
      this.accept(result)
      if (change.checkpoint !== undefined) this.stored = change.checkpoint
    })
  }

  /** Stores outbox entries under the turn, in the order of the other writes. */
  writeEntries(effects: Effects): Promise<void> {
    return this.chain(async () => this.accept(await this.init.access.write(effects)))
  }

  stage(change: ConversationChange): void {
    if (!this.live) return // K4: what was suspended leaves nothing behind.
    this.touched = true
    this.staged = { ...this.staged, ...change }
  }

  withholdAck(): void {
    this.ackWithheld = true
  }

  fail(error: unknown): void {
    this.failure ??= { error, of: 'conversation' }
  }

  findRecord(recordId: string): Promise<Message | null> {
    return this.init.findRecord(this.key, recordId)
  }

  /**
   * Waits for the writes that were begun (a commit in flight is never cut), and a while for the sends: neither can be
   * called back. A lost span's are not waited for.
   */
  async flush(clock: Clock): Promise<void> {
    if (this.sending > 0 && this.lostBy === null) {
      await new Promise<void>((resolve) => {
        const limit = clock.setTimeout(resolve, SEND_GRACE_MS)
        this.onIdle = () => {
          limit.cancel()
          resolve()
        }
      })
    }
    if (this.tail !== undefined) await this.tail.catch(() => undefined)
  }

  /** The checkpoint that the store has now, as far as this span knows; without what it staged. */
  get storedCheckpoint(): Omit<FlowCheckpoint, 'revision'> | null | undefined {
    return this.stored === undefined ? this.state?.checkpoint : this.stored
  }

  /** True of most messages of a bot alone: nothing failed, nothing is under way, nothing is to be stored. */
  get leavesNothing(): boolean {
    return (
      this.fence === null &&
      this.staged === undefined &&
      this.tail === undefined &&
      this.sending === 0 &&
      this.failure === undefined &&
      this.live
    )
  }

  get hasStaged(): boolean {
    return this.staged !== undefined
  }

  /** What the conversation left, as effects of the commit that ends this span. */
  stagedEffects(): Effects {
    return this.staged === undefined ? {} : this.conversationEffects(this.staged)
  }

  private chain(step: () => Promise<void>): Promise<void> {
    const before = this.tail
    const run = async () => {
      if (before !== undefined) await before.catch(() => undefined)
      this.assertLive()
      await step()
    }
    const done = run()
    this.tail = done
    return done
  }

  private conversationEffects(change: ConversationChange): Effects {
    const { epoch, appointments } = this.init
    const next = (): string => `${epoch()}:${++this.written}`
    return effectsOfChange(change, { revision: this.revision, next, appointments })
  }

  private accept(result: CommitResult): void {
    if (result.outcome === 'refused') {
      const error = new LeaseLostError(this.key, 'superseded', this.fenceDetail())
      this.revoke(error)
      throw error
    }
    this.written++
    this.revision = result.revision
  }

  private fenceDetail() {
    return this.fence === null ? {} : { fence: this.fence }
  }
}

function asLeaseLost(reason: unknown, key: string): LeaseLostError {
  return reason instanceof LeaseLostError ? reason : new LeaseLostError(key, 'revoked', { cause: reason })
}
