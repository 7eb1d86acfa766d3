/**
 * What a run owes the store, and when it pays (K1, H1, H3, H6, H7; ADR 5).
 *
 * - Entering is written at once, awaited, under coordination.
 * - A step transition and a kept answer are *owed*: staged at once, so that the commit carries them however the span
 *   ends, and written besides before work that may take long, at the latest `OWED_MS` later. The latest one counts.
 * - A wait and the end are staged for the commit that ends the span.
 * Snapshots copy `c.state` at the moment they speak of, since the step goes on changing it.
 * Without coordination nothing is written in between: persistent flows stage at waits and at their end only.
 */
import type { Timer } from '../contracts/clock.js'
import type { FlowCheckpoint, KeptAnswer } from '../contracts/checkpoint-store.js'
import { ConfigError } from '../contracts/errors.js'
import { markerDue, ttlOf } from '../kernel/settle-policy.js'
import type { Definition } from './definitions.js'
import { plainCopy } from './plain-json.js'
import type { ConversationChange, ConversationHost, TurnScope } from './port.js'

/** Longest a change is owed, milliseconds. */
export const OWED_MS = 50

export interface WaitMark {
  question: number
  sends: number
  timeoutMs: number | null
}

/** A kept answer, and the mark of the question that it answers (H7). */
export interface KeptMark {
  form: KeptAnswer
  mark: WaitMark
}

/** What of a run goes into its checkpoint. */
export interface Standing {
  readonly key: string
  readonly definition: Definition
  readonly state: object
  readonly initial: object
  readonly stepName: string | null
  readonly visit: number
  readonly scope: TurnScope | null
  /** Messages that wait for the next questions, as far as they can be kept. */
  readonly held: readonly KeptAnswer[]
  /** Record whose effects are made now; null without durability and for timers. */
  readonly recordId: string | null
}

export class Ledger {
  #owed: ConversationChange | null = null
  #timer: Timer | null = null
  #writing: Promise<void> = Promise.resolve()
  #inFlight: { change: ConversationChange; write: Promise<void> } | null = null
  /** The marker as written at a wait. */
  #marker: { at: number; ttlMs: number } | null = null
  #waited = false
  #complained = false
  /** Something of this run may be in the store, so its end must clear it. */
  touched: boolean
  /** A marker of this run may be in the store. */
  leftMarker = false
  /** The last snapshot failed: `c.state` is not plain JSON (H3). */
  unplain = false

  /** @param stores checkpoints are kept of this run. @param touched it came from the store. */
  constructor(
    private readonly host: ConversationHost,
    private readonly run: Standing,
    readonly stores: boolean,
    private readonly coordinated: boolean,
    touched: boolean,
    private readonly onFailure: (error: unknown) => void,
  ) {
    this.touched = touched
  }

  /** True if a checkpoint can hold an answer of this run. */
  get keeps(): boolean {
    return this.stores && this.coordinated
  }

  /** True if what the run last staged holds all of it. */
  get holds(): boolean {
    return this.keeps && !this.unplain
  }

  /** True if a wait that was staged and committed holds all of the run, with coordination or alone. */
  get waitHolds(): boolean {
    return this.stores && !this.unplain
  }

  /** K1: stores the entry now, if entries are stored. @returns whether a checkpoint was written. */
  async enter(scope: TurnScope, dropMarker: boolean): Promise<boolean> {
    if (!this.keeps) return false
    const change = this.#snapshot({})
    if (change.checkpoint === undefined) return false
    await writeOver(scope, dropMarker ? { ...change, marker: null } : change)
    return true
  }

  /** The run stands elsewhere now: at the beginning of a step, or with an answer to be kept. */
  owe(answer?: KeptAnswer, wait?: WaitMark): void {
    if (!this.keeps) return
    const change = this.#snapshot({
      ...(answer === undefined ? {} : { answer }),
      ...(wait === undefined ? {} : { wait }),
    })
    // H10: nothing to hand over before the first wait.
    if (this.unplain && this.#waited) this.#leaveMarker(change, null)
    if (Object.keys(change).length === 0) return
    this.#owed = change
    if (this.run.scope !== null) stageOver(this.run.scope, change)
    this.#timer ??= this.host.clock.setTimeout(
      () => {
        this.#timer = null
        this.flush().catch(this.onFailure)
      },
      OWED_MS,
      { background: true },
    )
  }

  /** Writes what is owed. @throws what the write throws; it is still owed then. */
  async flush(): Promise<void> {
    const { scope } = this.run
    const change = this.#owed
    if (change === null || scope === null) return this.#writing
    if (this.#inFlight?.change !== change) {
      const write = scope.write(change).then(
        () => {
          if (this.#owed === change) this.#settled()
        },
        (error: unknown) => {
          this.#inFlight = null
          throw error
        },
      )
      this.#inFlight = { change, write }
      this.#writing = write.catch(() => undefined)
    }
    await this.#inFlight.write
  }

  /** Resolves when no write is under way; never rejects. */
  idle(): Promise<void> {
    return this.#writing
  }

  /** The run waits: staged for the commit that ends this span. */
  stageWait(scope: TurnScope, wait: WaitMark): void {
    const change = this.#snapshot({ wait })
    this.#waited = true
    this.#markWait(change, wait)
    this.#settled()
    if (Object.keys(change).length > 0) stageOver(scope, change)
  }

  /** The wait's timeout acts: if its step is cut, or fails before it leaves something, it is not acted on again. */
  stageTimeout(scope: TurnScope): void {
    if (this.touched) scope.stage({ appointment: null })
  }

  /** The run has ended: what it left is removed with the commit. */
  stageEnd(scope: TurnScope): void {
    this.#settled()
    const change: ConversationChange = {}
    if (this.touched) change.checkpoint = null
    if (this.leftMarker) change.marker = null
    if (Object.keys(change).length > 0) stageOver(scope, change)
  }

  /** Nothing is owed any more, and no timer runs. */
  close(): void {
    this.#settled()
  }

  #settled(): void {
    this.#owed = null
    this.#timer?.cancel()
    this.#timer = null
  }

  #snapshot(more: { wait?: WaitMark; answer?: KeptAnswer }): ConversationChange {
    if (!this.stores) return {}
    const { definition, visit, stepName } = this.run
    const state = plainCopy(this.run.state as Record<string, unknown>, 'c.state')
    if (!state.plain) return this.#unforwardable(state.path, state.what)
    this.unplain = false
    this.touched = true
    const checkpoint: Omit<FlowCheckpoint, 'revision'> = {
      v: 1,
      name: definition.name,
      kind: definition.kind,
      visit,
      state: state.value,
      fingerprint: definition.fingerprint,
    }
    if (stepName !== null) checkpoint.step = stepName
    const initial = this.#initial()
    if (initial !== undefined) checkpoint.initial = initial
    if (more.wait !== undefined) checkpoint.wait = markOf(more.wait)
    if (more.answer !== undefined) checkpoint.answer = more.answer
    const { held, recordId } = this.run
    if (held.length > 0) checkpoint.held = [...held]
    // Repeated from its beginning, the step's sends meet the names of this attempt; after a wait they are new ones.
    if (more.wait === undefined && recordId !== null) checkpoint.recordId = recordId
    if (!definition.persistent) {
      checkpoint.ephemeral = true
      const { ttlMs, graceMs } = this.host.options
      checkpoint.ttlMs = ttlOf(ttlMs, more.wait?.timeoutMs, graceMs)
    }
    this.#marker = null
    return this.leftMarker ? { checkpoint, marker: null } : { checkpoint }
  }

  /** H3: no checkpoint can hold this state, and an older one would resume in the wrong place. */
  #unforwardable(path: string, what: string): ConversationChange {
    this.unplain = true
    if (!this.#complained) {
      this.#complained = true
      const { name, persistent } = this.run.definition
      const { key } = this.run
      const message = `State of flow "${name}" in "${key}" cannot be stored: ${path} is ${what}. It goes on here, and is not handed over.`
      if (persistent) this.host.report(new ConfigError(message, { option: path, accepted: 'plain JSON' }))
      else this.host.logger.warn({ key: this.run.key, flow: name, path }, message)
    }
    return this.touched ? { checkpoint: null } : {}
  }

  /** H6: what cannot be forwarded leaves a marker while it waits. */
  #markWait(change: ConversationChange, wait: WaitMark): void {
    const now = this.host.clock.monotonic()
    const ttlMs = ttlOf(this.host.options.ttlMs, wait.timeoutMs)
    const written = this.#marker === null ? null : { ageMs: now - this.#marker.at, ttlMs: this.#marker.ttlMs }
    if (!markerDue(written, ttlMs)) return
    if (this.#leaveMarker(change, wait)) this.#marker = { at: now, ttlMs }
  }

  #leaveMarker(change: ConversationChange, wait: WaitMark | null): boolean {
    const { definition, stepName } = this.run
    const reason = definition.kind === 'async' ? 'async' : this.unplain && this.stores ? 'state' : null
    if (reason === null || !this.coordinated || !this.host.options.markers) return false
    const initial = this.#initial()
    change.marker = {
      v: 1,
      name: definition.name,
      kind: definition.kind,
      reason,
      ...(stepName === null ? {} : { step: stepName }),
      ...(initial === undefined ? {} : { initial }),
      ttlMs: ttlOf(this.host.options.ttlMs, wait?.timeoutMs),
    }
    this.leftMarker = true
    return true
  }

  #initial(): Record<string, unknown> | undefined {
    const initial = plainCopy(this.run.initial as Record<string, unknown>, 'initial')
    return initial.plain && Object.keys(initial.value).length > 0 ? initial.value : undefined
  }
}

function markOf(wait: WaitMark): NonNullable<FlowCheckpoint['wait']> {
  const { question, sends, timeoutMs } = wait
  return { question, sends, ...(timeoutMs === null ? {} : { timeoutMs }) }
}

/** Spans in which a checkpoint was staged: a later write must not be undone by it at the commit. */
const staged = new WeakSet<TurnScope>()

export function stageOver(scope: TurnScope, change: ConversationChange): void {
  if (change.checkpoint !== undefined) staged.add(scope)
  scope.stage(change)
}

async function writeOver(scope: TurnScope, change: ConversationChange): Promise<void> {
  if (change.checkpoint !== undefined && staged.has(scope)) scope.stage(change)
  await scope.write(change)
}
