/** The conversation engine: the copies in memory of this replica, and what becomes of them (port.ts). */
import { LeaseLostError } from '../contracts/errors.js'
import type { Message } from '../contracts/message.js'
import { arrive, type ArrivalHost } from './arrivals.js'
import { answerOf, type Answer } from './answers.js'
import { timeOutStored } from './timeouts.js'
import type { Resume } from './frame.js'
import { stageOver } from './ledger.js'
import { LeftOver } from './left-over.js'
import { plainCopy } from './plain-json.js'
import type { ConversationChange, ConversationEngine, ConversationHost, TurnScope } from './port.js'
import type { FlowRegistry } from './registry.js'
import type { RunOwner, RunStart } from './run-start.js'
import { Run } from './run.js'

/** Copies kept in memory before those that the store can replace are let go, least recently used first. */
const MAX_COPIES = 10_000
/** How many of the oldest copies are looked at to find one that can be let go. */
const EVICTION_LOOKS = 16

/** @param maxCopies default 10,000; copies that only memory holds are kept beyond it. */
export function createConversations(
  host: ConversationHost,
  registry: FlowRegistry,
  options: { maxCopies?: number } = {},
): ConversationEngine {
  return new Conversations(host, registry, options.maxCopies ?? MAX_COPIES)
}

class Conversations implements ConversationEngine, RunOwner<Run>, ArrivalHost {
  /** In the order of their last use. */
  readonly #runs = new Map<string, Run>()
  readonly #leftOver: LeftOver

  constructor(
    readonly host: ConversationHost,
    readonly registry: FlowRegistry,
    private readonly maxCopies: number,
  ) {
    this.#leftOver = new LeftOver(host)
  }

  freeze(): void {
    this.registry.freeze()
  }

  get persists(): boolean {
    return this.registry.persists
  }

  get size(): number {
    return this.#runs.size
  }

  localRevision(key: string): string | null | undefined {
    return this.#runs.get(key)?.revision
  }

  async accept(scope: TurnScope): Promise<boolean> {
    const answer = answerOf(scope)
    if (answer === null) return false
    const run = this.#runs.get(scope.key)
    if (run !== undefined) {
      if (this.isCurrent(run, scope)) {
        this.#keep(run)
        run.give(scope, answer)
        return true
      }
      run.vanish(new LeaseLostError(scope.key, 'superseded'))
    }
    return scope.state === undefined ? false : arrive(this, scope)
  }

  async timeOut(scope: TurnScope): Promise<void> {
    this.discardStale(scope)
    const run = this.#runs.get(scope.key)
    if (run !== undefined) return run.timeOut(scope)
    await timeOutStored(this, scope)
  }

  discardStale(scope: TurnScope): void {
    const run = this.#runs.get(scope.key)
    if (run === undefined || this.isCurrent(run, scope)) return
    run.vanish(new LeaseLostError(scope.key, 'superseded'))
  }

  triggeredBy(message: Message): string | null {
    return this.registry.triggeredBy(message)
  }

  async enter(scope: TurnScope, name: string, initial: Record<string, unknown> = {}): Promise<void> {
    const definition = this.registry.require(name)
    scope.assertLive()
    const present = this.#leavePresent(scope)
    const claimed = this.#leftOver.claim(scope)
    const run = new Run(this, scope.key, scope, {
      definition,
      state: copyState(initial),
      initial,
      visit: 1,
      stepName: definition.steps[0] ?? null,
      touched: false,
      stores:
        definition.persistent ||
        (definition.kind === 'flow' && scope.coordinated && this.host.options.forward),
      revision: present.revision,
      ...claimed,
    })
    this.#keep(run)
    const left = present.left
    try {
      const stored = await run.ledger.enter(scope, left.marker === null)
      if (!stored && Object.keys(left).length > 0) stageOver(scope, left)
    } catch (error) {
      const lost =
        error instanceof LeaseLostError ? error : new LeaseLostError(scope.key, 'revoked', { cause: error })
      run.vanish(lost)
      throw error
    }
    scope.assertLive()
    if (!run.isGone) run.start(null)
  }

  async leave(scope: TurnScope): Promise<boolean> {
    // K4: code of an earlier span must not end what the chat is in now.
    scope.assertLive()
    const { left, was } = this.#leavePresent(scope)
    this.#leftOver.release(scope)
    if (Object.keys(left).length > 0) stageOver(scope, left)
    return was
  }

  running(key: string): Promise<void> | null {
    return this.#atWork(key) === null ? null : this.#settled(key)
  }

  suspend(key: string, error: LeaseLostError, fence?: number | null): void {
    this.#leftOver.stopped(key)
    this.#servedUpTo(key, fence)?.suspend(error)
  }

  committed(key: string, revision: string | null): void {
    this.#runs.get(key)?.committed(revision)
  }

  drop(key: string, error: LeaseLostError, fence?: number | null): void {
    this.#servedUpTo(key, fence)?.vanish(error)
  }

  #servedUpTo(key: string, fence: number | null | undefined): Run | undefined {
    const run = this.#runs.get(key)
    return run !== undefined && run.fence > (fence ?? Infinity) ? undefined : run
  }

  stop(error: LeaseLostError): void {
    for (const run of [...this.#runs.values()]) run.vanish(error)
  }

  /** Run by whom: the copy counts if nobody else can have gone on from where it stands (T7, K3). */
  isCurrent(run: Run, scope: TurnScope): boolean {
    if (!scope.coordinated) return true
    // A conversation that the store knows nothing of leaves no trace elsewhere: whoever had the chat routed past it.
    if (!run.ledger.keeps && scope.servedElsewhere === true) return false
    return scope.state === undefined || scope.state.revision === run.revision
  }

  passOn(scope: TurnScope, left: readonly Answer[]): Promise<void> {
    return this.#leftOver.passOn(scope, left)
  }

  gone(run: Run): void {
    if (this.#runs.get(run.key) === run) this.#runs.delete(run.key)
  }

  begin(scope: TurnScope, start: RunStart, resume: Resume | null): void {
    const run = new Run(this, scope.key, scope, start)
    this.#keep(run)
    run.start(resume)
  }

  /** A conversation may be followed by another one that it entered: settled is what runs nothing at all. */
  async #settled(key: string): Promise<void> {
    for (;;) {
      const working = this.#atWork(key)
      if (working === null) return
      await working
    }
  }

  #atWork(key: string): Promise<void> | null {
    return this.#runs.get(key)?.running ?? this.#leftOver.of(key)
  }

  /** Ends what the chat is in, here or in the store. @returns what has to be removed there, not yet staged. */
  #leavePresent(scope: TurnScope): { was: boolean; revision: string | null; left: ConversationChange } {
    const run = this.#runs.get(scope.key)
    const left: ConversationChange = {}
    if ((scope.state?.checkpoint ?? null) !== null) left.checkpoint = null
    if ((scope.state?.marker ?? null) !== null) left.marker = null
    const was = run !== undefined || Object.keys(left).length > 0
    const revision = scope.state?.revision ?? run?.revision ?? null
    if (run !== undefined) {
      if (run.ledger.touched) left.checkpoint = null
      if (run.ledger.leftMarker) left.marker = null
      run.vanish(new LeaseLostError(scope.key, 'revoked'))
    }
    return { was, revision, left }
  }

  #keep(run: Run): void {
    this.#runs.delete(run.key)
    this.#runs.set(run.key, run)
    if (this.#runs.size <= this.maxCopies) return
    let looks = 0
    for (const old of this.#runs.values()) {
      if (old.evictable && !this.host.serves(old.key)) old.vanish(new LeaseLostError(old.key, 'revoked'))
      if (++looks >= EVICTION_LOOKS || this.#runs.size <= this.maxCopies) return
    }
  }
}

/** What is plain JSON is copied, so that `restart` finds the initial state unchanged; else the object is shared. */
function copyState(initial: Record<string, unknown>): Record<string, unknown> {
  const copied = plainCopy(initial, 'initial')
  return copied.plain ? copied.value : { ...initial }
}
