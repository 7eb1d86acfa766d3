/**
 * Where messages come in: dropped if this process has them already, noted where they must survive, queued in the
 * order of arrival, and worked on when their chat's turn comes.
 *
 *   without coordination    lane of the chat → runner
 *   shared backend          take(ticket + arrival + read) in one trip → runner
 *   separate backend        lane: arrive → take; then runner, so that slow storing never swaps two messages (T2)
 *
 * A message is accepted (`accept` resolves, the platform may be told) when its ticket stands, with durability when
 * the journal has it. With durability a ticket only wakes: the runner works on the oldest record (T6).
 */
import { setMaxListeners } from 'node:events'
import type { Clock, Timer } from '../contracts/clock.js'
import type { TakeOptions, Turn, TurnQueue } from '../contracts/coordinator.js'
import { CoordinationUnavailableError, LeaseLostError } from '../contracts/errors.js'
import type { Message } from '../contracts/message.js'
import type { Arrival, ReadOptions } from '../contracts/state-store.js'
import { chatKeyOf } from '../kernel/chat-key.js'
import type { TurnScope } from '../conversation/port.js'
import { currentScope, runDetached } from './act-scope.js'
import { ChatLanes } from './chat-lanes.js'
import { isOverflow, Overflow, type OverflowLimit } from './overflow.js'
import { RecentIds } from './recent-ids.js'
import type { LocalTurn } from './local-turn.js'
import type { TurnRunner } from './turn-runner.js'
import { withoutId, withoutRaw, type Work } from './work.js'

export interface InboxOptions {
  provider: string
  /** Null without coordination. */
  turns: TurnQueue | null
  /** True: arrival and read ride on the ticket. */
  shared: boolean
  journal: boolean
  turnWaitMs: number
  maxWaitingPerChat: number
  maxWaiting: number
  clock: Clock
  runner: TurnRunner
  /** Notes an arrival in a store that the ticket does not reach; absent if there is nothing to note. */
  arrive?: (key: string, arrival: Arrival) => Promise<unknown>
  /** What a ticket brings along. */
  readOptions: (message: Message) => ReadOptions | undefined
  /** With durability and without coordination: what stands in for a turn. */
  localTurn: ((key: string) => LocalTurn) | null
  /** May this replica work on records now (not on a standby of an exclusive transport)? */
  maySend: () => boolean
  report: (error: unknown) => void
}

/** Ids remembered per process, at least; some 3 MB at most. */
const REMEMBERED_IDS = 10_000
const FIRST_RETRY_MS = 1000
const LONGEST_RETRY_MS = 60_000

export class Inbox {
  private readonly ids = new RecentIds(REMEMBERED_IDS)
  /** Work of each chat, where there is no queue of tickets. */
  private readonly lanes = new ChatLanes()
  /** Storing of each chat's messages, in the order they came: it never waits for a handler (scenario 17). */
  private readonly arrivals = new ChatLanes()
  /** Messages and wakes per chat that wait or are worked on; timers do not count, as they leave records alone. */
  private readonly waiting = new Map<string, number>()
  private readonly retries = new Map<string, { timer: Timer; dueAt: number }>()
  private readonly timerRetries = new Set<Timer>()
  private readonly waits = new AbortController()
  private readonly overflow: Overflow
  private closed = false
  private count = 0
  private idle: (() => void)[] = []

  constructor(private readonly options: InboxOptions) {
    this.overflow = new Overflow(options.clock, options.report)
    // Every waiting ticket listens: more than Node's ten are no leak.
    setMaxListeners(0, this.waits.signal)
  }

  /** Messages, wakes and timers that wait or are worked on here. */
  get inFlight(): number {
    return this.count
  }

  /** @throws CoordinationUnavailableError if it cannot be accepted; the platform should deliver it again. */
  accept(message: Message): Promise<void> {
    // What user code hands in (a transport within the process) is no part of that code's own span.
    if (currentScope() !== undefined) return runDetached(() => this.accept(message))
    const key = chatKeyOf({
      provider: this.options.provider,
      chatId: message.chatId,
      ...(message.participant === undefined ? {} : { participant: message.participant }),
    })
    const id = `${key} ${message.id}`
    const known = this.ids.get(id)
    if (known !== undefined) return known === true ? ACCEPTED : known
    if (this.closed) return Promise.reject(new CoordinationUnavailableError('stopped', { key }))
    if (message.id === '') return Promise.reject(withoutId(this.options.provider))
    const limit = this.exceeded(key)
    if (limit !== null) return Promise.reject(this.overflow.refuse(key, limit))
    if (this.options.turns === null && !this.options.journal) {
      this.ids.add(id, true)
      const work: Work = { kind: 'message', message }
      this.enter(key, work)
      this.lanes.run(key, () => this.work(key, null, work))
      return ACCEPTED
    }
    const acceptance = this.acceptWithTicket(key, id, message)
    this.ids.add(id, acceptance)
    return acceptance
  }

  /** Asks for a turn for the chat's oldest record. One at a time waits. */
  wake(key: string): void {
    if (this.closed || !this.options.maySend() || (this.waiting.get(key) ?? 0) > 0) return
    void this.acceptWork(key, { kind: 'wake' }, null)
  }

  /** The same, later. An earlier appointment wins. */
  wakeIn(key: string, ms: number): void {
    if (this.closed) return
    const { clock } = this.options
    const dueAt = clock.monotonic() + ms
    const known = this.retries.get(key)
    if (known !== undefined && known.dueAt <= dueAt) return
    known?.timer.cancel()
    const fire = () => {
      this.retries.delete(key)
      this.wake(key)
    }
    this.retries.set(key, { timer: clock.setTimeout(fire, ms, { background: true }), dueAt })
  }

  /** T5: a timer of a conversation acts under its chat's turn too. */
  timer(key: string, id: string, act: (scope: TurnScope) => Promise<void>, stillWanted: () => boolean): void {
    const attempt = async (retryMs: number): Promise<void> => {
      const error = await this.acceptWork(key, { kind: 'timer', id, act }, null)
      if (error === null || this.closed || !stillWanted()) return
      const timer = this.options.clock.setTimeout(
        () => {
          this.timerRetries.delete(timer)
          void attempt(Math.min(retryMs * 2, LONGEST_RETRY_MS))
        },
        retryMs,
        { background: true },
      )
      this.timerRetries.add(timer)
    }
    if (!this.closed) void attempt(FIRST_RETRY_MS)
  }

  /** Takes nothing more. What waits and is journalled is left to the others; the rest may still be worked off. */
  close(): void {
    this.closed = true
    for (const { timer } of this.retries.values()) timer.cancel()
    for (const timer of this.timerRetries) timer.cancel()
    this.retries.clear()
    this.overflow.close()
    if (this.options.journal) this.giveUpWaiting()
  }

  /** Withdraws every ticket that is not granted. */
  giveUpWaiting(): void {
    this.waits.abort(new CoordinationUnavailableError('stopped'))
  }

  /** Resolves when nothing waits and nothing is worked on. */
  whenIdle(): Promise<void> {
    return this.count === 0 ? Promise.resolve() : new Promise((resolve) => this.idle.push(resolve))
  }

  /** The chat's own limit first: a chat that floods leaves room for others. */
  private exceeded(key: string): OverflowLimit | null {
    const { maxWaitingPerChat, maxWaiting } = this.options
    if ((this.waiting.get(key) ?? 0) >= maxWaitingPerChat) return 'maxWaitingPerChat'
    return this.count >= maxWaiting ? 'maxWaiting' : null
  }

  private async acceptWithTicket(key: string, id: string, message: Message): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const accepted = () => {
        this.ids.settle(id)
        resolve()
      }
      void this.acceptWork(key, { kind: 'message', message }, accepted).then((error) => {
        if (error === null) return accepted()
        this.ids.forget(id) // So that the platform's repetition counts.
        reject(error)
      })
    })
  }

  /** Never rejects. @returns what kept the work from getting its turn, or null. */
  private acceptWork(key: string, work: Work, accepted: (() => void) | null): Promise<Error | null> {
    return new Promise((resolve) => {
      this.enter(key, work)
      const { shared, turns } = this.options
      const direct =
        turns !== null && (shared || work.kind !== 'message' || this.options.arrive === undefined)
      if (direct) {
        void this.takeAndWork(key, work, accepted).then(resolve)
        return
      }
      this.arrivals.run(key, () => this.storeThenWork(key, work, accepted, resolve))
    })
  }

  private async storeThenWork(
    key: string,
    work: Work,
    accepted: (() => void) | null,
    outcome: (error: Error | null) => void,
  ): Promise<void> {
    const { arrive, turns, localTurn } = this.options
    try {
      if (work.kind === 'message') await arrive?.(key, this.arrivalOf(work.message))
    } catch (error) {
      this.leave(key, work)
      return outcome(this.unreachable(key, error, work))
    }
    if (this.options.journal) accepted?.()
    if (turns !== null) {
      // The ticket is asked for before the lane goes on: that is the order.
      void this.takeAndWork(key, work, accepted).then(outcome)
      return
    }
    accepted?.()
    this.lanes.run(key, () => this.work(key, localTurn?.(key) ?? null, work).then(() => outcome(null)))
  }

  private async takeAndWork(key: string, work: Work, accepted: (() => void) | null): Promise<Error | null> {
    let turn: Turn | 'duplicate'
    try {
      turn = await (this.options.turns as TurnQueue).take(key, this.takeOptions(work, accepted))
    } catch (error) {
      this.leave(key, work)
      return this.unreachable(key, error, work)
    }
    if (turn === 'duplicate') {
      this.leave(key, work)
      return null
    }
    accepted?.()
    await this.work(key, turn, work)
    return null
  }

  private async work(key: string, turn: Turn | LocalTurn | null, work: Work): Promise<void> {
    await this.options.runner.run(key, turn, work)
    this.leave(key, work)
  }

  private takeOptions(work: Work, accepted: (() => void) | null): TakeOptions {
    const { turnWaitMs, shared, journal } = this.options
    const options: TakeOptions = { waitMs: turnWaitMs, signal: this.waits.signal }
    if (work.kind === 'timer') return options
    if (work.kind === 'message') {
      options.dedupeId = work.message.id
      if (shared) options.arrival = this.arrivalOf(work.message)
    }
    if (accepted !== null) options.onTicket = accepted
    if (shared) {
      const read = work.kind === 'message' ? this.options.readOptions(work.message) : { journal }
      if (read !== undefined) options.read = read
    }
    return options
  }

  private arrivalOf(message: Message): Arrival {
    const arrival: Arrival = { messageId: message.id, timestamp: message.timestamp }
    if (this.options.journal) arrival.message = withoutRaw(message)
    return arrival
  }

  /** T6: reported; with durability the record is woken again later. */
  private unreachable(key: string, cause: unknown, work: Work): Error {
    const error =
      cause instanceof CoordinationUnavailableError || cause instanceof LeaseLostError
        ? cause
        : new CoordinationUnavailableError('unreachable', { key, cause })
    const stopping = this.closed && this.options.journal
    if (isOverflow(error)) this.overflow.note(key, undefined, error)
    else if (!stopping) this.options.report(error)
    if (this.options.journal && work.kind !== 'timer') this.wakeIn(key, FIRST_RETRY_MS)
    return error
  }

  private enter(key: string, { kind }: Work): void {
    this.count++
    if (kind !== 'timer') this.waiting.set(key, (this.waiting.get(key) ?? 0) + 1)
  }

  private leave(key: string, { kind }: Work): void {
    this.count--
    const left = (this.waiting.get(key) ?? 0) - (kind === 'timer' ? 0 : 1)
    if (left > 0) this.waiting.set(key, left)
    else this.waiting.delete(key)
    if (this.count === 0) for (const resolve of this.idle.splice(0)) resolve()
  }
}

const ACCEPTED = Promise.resolve()
