/**
 * What happens under one turn: open → handle → settle → commit and release. Nothing here chooses who is next; that
 * is the queue's. Each way out is one of:
 *
 *   committed   the effect and the release are one write (Z4); the copy in memory is current
 *   refused     a later holder has written: the copy is dropped, its row is left alone (K2)
 *   lost        the turn was lost on the way: nothing is written any more, nothing counts as an attempt (L2, K4)
 *   failed      with durability: noted with a back-off, or dead-lettered (D3); nothing staged is committed
 *   nothing     neither a record to work on (or its back-off is not over) nor an appointment that is over (ADR 8)
 */
import type { Clock } from '../contracts/clock.js'
import { BotmeshError, LeaseLostError, ProviderNotLeaderError } from '../contracts/errors.js'
import type { JournalRecord } from '../contracts/journal.js'
import type { CommitResult, Effects } from '../contracts/state-store.js'
import type { ConversationEngine } from '../conversation/port.js'
import type { ChatAccess } from './chat-access.js'
import { tellable, textOfError } from '../kernel/told-error.js'
import { runInScope } from './act-scope.js'
import { firstOf } from './settling.js'
import type { Span } from './span.js'
import type { GrantedTurn, SpanFactory } from './span-factory.js'
import type { Work } from './work.js'

/** What the bot does under a turn. */
export interface SpanHandler {
  /** Loads what handlers need besides the chat's state; begun right after the grant. */
  prepare(span: Span): Promise<void> | undefined
  /** Hooks and routing. Rejects with what the handler threw. */
  handle(span: Span): Promise<void>
  /** Before the commit of a span that went well: `ctx.user`. */
  save(span: Span): Promise<void> | undefined
  /** After the commit. */
  handled(span: Span): void
}

export interface RunnerOptions {
  clock: Clock
  engine: ConversationEngine
  spans: SpanFactory
  handler: SpanHandler
  /** T4; null without coordination: a step may take as long as it likes. */
  settleMs: number | null
  /** D3; null without durability. */
  attempts: { max: number; delayMs(attempts: number): number } | null
  report: (error: unknown) => void
  leaseLost: (key: string, error: LeaseLostError) => void
  deadLettered: (key: string, record: JournalRecord, error: unknown) => void
  /** False: somebody else works on this chat by now. */
  failRecord: (
    key: string,
    id: string,
    fence: number,
    error: string,
    retryMs: number | null,
  ) => Promise<boolean>
  /** Asks for another turn of this chat, with durability. */
  wakeIn: (key: string, ms: number) => void
}

export class TurnRunner {
  constructor(private readonly options: RunnerOptions) {}

  /** Ends the turn in every case. Never rejects. */
  async run(key: string, turn: GrantedTurn | null, work: Work): Promise<void> {
    const { spans, engine } = this.options
    const access = spans.access(key, turn)
    let span: Span | null = null
    try {
      // What need not be waited for is not: a bot alone spends its time on promises, not on work.
      const opened = spans.unread(key, turn, work) ?? (await spans.read(key, turn, access, work))
      const waitMs = typeof opened === 'string' ? 0 : (opened.record?.waitMs ?? 0)
      if (typeof opened === 'string' || waitMs > 0) {
        await access.abandon({ unused: true })
        if (waitMs > 0 || opened === 'again') this.options.wakeIn(key, waitMs)
        return
      }
      span = spans.span(key, turn, access, work, opened, this.isFinal(opened.record))
      // Once only, unless the turn is lost: what fails here every time would fail in a loop.
      if (opened.overdue === true) span.stage({ appointment: null })
      if (span.coordinated) engine.discardStale(span)
      await this.perform(span, work)
      span.handling = false
      const running = engine.running(key)
      if (running !== null) await this.settle(span, running)
      const ending = this.conclude(span, access)
      if (ending !== undefined) await ending
    } catch (error) {
      this.surprise(key, turn, span, error)
      await access.abandon().catch((cause: unknown) => this.options.report(cause))
    } finally {
      span?.end()
    }
  }

  private isFinal(record: JournalRecord | null): boolean {
    const { attempts } = this.options
    return record !== null && attempts !== null && record.attempts + 1 >= attempts.max
  }

  /** Ends when the handler has ended, or when it may not act any more: JavaScript cannot stop it (T4). */
  private perform(span: Span, work: Work): Promise<void> {
    return new Promise((resolve) => {
      span.whenStopped(resolve)
      const prepared = this.options.handler.prepare(span)
      const done = prepared === undefined ? this.act(span, work) : prepared.then(() => this.act(span, work))
      done.then(resolve, (thrown: unknown) => {
        const error = tellable(thrown)
        if (span.lostBy === null) span.failure ??= { error, of: 'handler' }
        else if (!(error instanceof LeaseLostError)) this.options.report(error)
        resolve()
      })
    })
  }

  private act(span: Span, work: Work): Promise<void> {
    const { handler, engine } = this.options
    if (work.kind === 'timer') return runInScope(span.act, () => work.act(span))
    // A wake without a record: the chat's appointment is over.
    if (span.message === null) return runInScope(span.act, () => engine.timeOut(span))
    // Alone, a handler's turn cannot be lost: its context is scope enough, and following it costs half the speed.
    return span.fence === null ? handler.handle(span) : runInScope(span.act, () => handler.handle(span))
  }

  /** T3, T4: waits until the conversation waits again or has ended, at most `settleMs`; then it is stopped. */
  private async settle(span: Span, running: Promise<void>): Promise<void> {
    const { engine, settleMs, clock } = this.options
    const outcome = await firstOf(running, span, settleMs, clock)
    if (outcome === 'settled') return
    const error = span.lostBy ?? span.cutBy ?? new LeaseLostError(span.key, 'settled', fenceOf(span))
    span.cut(error)
    engine.suspend(span.key, error, span.fence)
    // Told here: nothing else would say that a step was too long for its turn (T4).
    if (error.reason === 'settled') this.options.leaseLost(span.key, error)
  }

  private conclude(span: Span, access: ChatAccess): Promise<void> | undefined {
    const { handler } = this.options
    if (!span.leavesNothing) return this.concludeTurn(span, access)
    const saved = handler.save(span)
    if (saved !== undefined) return saved.then(() => handler.handled(span))
    handler.handled(span)
    return undefined
  }

  private async concludeTurn(span: Span, access: ChatAccess): Promise<void> {
    await span.flush(this.options.clock)
    if (span.lostBy !== null) return this.loseTurn(span, access, span.lostBy)
    if (span.recordId !== null && (span.failure !== undefined || span.ackWithheld)) {
      return this.failAttempt(span, access)
    }
    if (span.failure !== undefined) this.reportFailure(span, span.failure.error)
    if (span.cutBy === null) {
      const saved = this.options.handler.save(span)
      if (saved !== undefined && !(await this.savedWell(span, saved))) return this.failAttempt(span, access)
    }
    const effects = this.effectsOf(span)
    if (Object.keys(effects).length > 0) return access.finish(effects, (result) => this.landed(span, result))
    await access.abandon()
    this.options.handler.handled(span)
  }

  /** False if the attempt has failed: what `ctx.user` holds can never be stored (D3). An outage is no attempt. */
  private async savedWell(span: Span, saved: Promise<void>): Promise<boolean> {
    try {
      await saved
      return true
    } catch (error) {
      if (error instanceof BotmeshError && error.retryable) throw error
      span.failure ??= { error, of: 'handler' }
      if (span.recordId !== null) return false
      this.reportFailure(span, error)
      return true
    }
  }

  private effectsOf(span: Span): Effects {
    const effects: Effects = span.stagedEffects()
    if (span.message !== null && !span.ackWithheld && span.fence !== null) effects.inboundId = span.message.id
    if (span.recordId !== null) effects.ack = [span.recordId]
    if (span.outbox !== null) Object.assign(effects, span.outbox.finalEffects(keptRecord(effects, span)))
    return effects
  }

  private landed(span: Span, result: CommitResult): void {
    const { engine, handler, leaseLost } = this.options
    if (result.outcome === 'refused') {
      const error = new LeaseLostError(span.key, 'superseded', fenceOf(span))
      span.revoke(error)
      engine.drop(span.key, error, span.fence)
      leaseLost(span.key, error)
      return
    }
    engine.committed(span.key, result.revision)
    if (result.more === true) this.options.wakeIn(span.key, 0)
    handler.handled(span)
  }

  private async loseTurn(span: Span, access: ChatAccess, error: LeaseLostError): Promise<void> {
    const { attempts } = this.options
    this.options.engine.drop(span.key, error, span.fence)
    if (error.reason === 'superseded') this.options.leaseLost(span.key, error)
    const failed = span.failure?.error
    if (failed !== undefined && !(failed instanceof LeaseLostError)) this.reportFailure(span, failed)
    await span.outbox?.noteOutcomes(span.key)
    await access.abandon()
    // Not an attempt; if nobody else gets to the record first, this replica does.
    if (span.recordId !== null && attempts !== null) this.options.wakeIn(span.key, attempts.delayMs(0))
  }

  /** D3: what failed is tried again later, before anything newer of its chat (T6), or given up. */
  private async failAttempt(span: Span, access: ChatAccess): Promise<void> {
    const { attempts, engine } = this.options
    const stopped = span.cutBy ?? new LeaseLostError(span.key, 'settled', fenceOf(span))
    const error = span.failure === undefined ? stopped : span.failure.error
    if (this.leavesItsState(span)) await access.write(span.stagedEffects())
    if (span.touched || span.ackWithheld) engine.drop(span.key, stopped, span.fence)
    await span.outbox?.noteOutcomes(span.key)
    const { record } = span
    if (attempts === null || record === null || isNoAttempt(error)) return access.abandon()
    const given = span.finalAttempt
    const retryMs = given ? null : Math.max(attempts.delayMs(record.attempts), askedDelay(error))
    const noted = await this.options.failRecord(
      span.key,
      record.id,
      access.fence,
      textOfError(error),
      retryMs,
    )
    if (!noted) {
      // Not counted, so neither given up nor tried again by this replica: the record is the later holder's.
      this.reportFailure(span, error)
      return this.superseded(span, access)
    }
    await access.abandon()
    if (given) this.options.deadLettered(span.key, record, error)
    else this.reportFailure(span, error)
    this.options.wakeIn(span.key, retryMs ?? 0)
  }

  /** The store knows a later holder of this chat: the turn is lost, whatever the coordinator says yet. */
  private async superseded(span: Span, access: ChatAccess): Promise<void> {
    const error = new LeaseLostError(span.key, 'superseded', fenceOf(span))
    span.revoke(error)
    this.options.engine.drop(span.key, error, span.fence)
    this.options.leaseLost(span.key, error)
    await access.abandon()
  }

  /** A suspended step keeps its checkpoint (T4); a conversation given up with its record is ended in the store too. */
  private leavesItsState(span: Span): boolean {
    if (span.failure === undefined) return span.hasStaged
    return span.finalAttempt && span.failure.of === 'conversation' && span.hasStaged
  }

  private reportFailure(span: Span, error: unknown): void {
    // Its own turn's loss is told by `coordination:lease-lost`, once.
    if (error instanceof LeaseLostError && error.key === span.key) return
    this.options.report(error)
  }

  /** The store or the turn failed outside of user code. */
  private surprise(key: string, turn: GrantedTurn | null, span: Span | null, error: unknown): void {
    const { engine, attempts } = this.options
    const lost =
      error instanceof LeaseLostError ? error : new LeaseLostError(key, 'revoked', { cause: error })
    span?.revoke(lost)
    // Alone, the copy in memory is still the truth; among replicas it may be ahead of the store.
    if (turn !== null && engine.localRevision(key) !== undefined) engine.drop(key, lost, turn.fence)
    if (!(error instanceof LeaseLostError)) this.options.report(error)
    else if (error.reason === 'superseded') this.options.leaseLost(key, error)
    if (attempts !== null) this.options.wakeIn(key, attempts.delayMs(0))
  }
}

/** Records that the checkpoint left behind still points to: their sends are met again (H7). */
function keptRecord(effects: Effects, span: Span): ReadonlySet<string> {
  const checkpoint = effects.checkpoint === undefined ? span.storedCheckpoint : effects.checkpoint
  const answer = checkpoint?.answer
  // As stored: nobody has looked yet whether it is an answer at all.
  const pointer = (answer as { recordId?: string } | null | undefined)?.recordId
  const kept = new Set(pointer === undefined ? [] : [pointer])
  return checkpoint?.recordId === undefined ? kept : kept.add(checkpoint.recordId)
}

/** Whoever leads the transport finds the record; a shutdown is no attempt either (D3). */
function isNoAttempt(error: unknown): boolean {
  return (
    error instanceof ProviderNotLeaderError || (error instanceof LeaseLostError && error.reason === 'stopped')
  )
}

function fenceOf(span: Span) {
  return span.fence === null ? {} : { fence: span.fence }
}

function askedDelay(error: unknown): number {
  const details: unknown = error instanceof BotmeshError ? error.details : undefined
  const asked = (details as { retryAfterMs?: unknown } | undefined)?.retryAfterMs
  return typeof asked === 'number' && Number.isFinite(asked) ? asked : 0
}
