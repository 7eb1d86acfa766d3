/**
 * A message for a chat whose conversation has no live copy here: carries out what the hand-over policy decides
 * (kernel/handover-policy.ts), and reports it (H9).
 */
import type { ConversationMarker, FlowCheckpoint, KeptAnswer } from '../contracts/checkpoint-store.js'
import {
  decideArrival,
  type ArrivalDecision,
  type FallbackReason,
  type ResumeMode,
} from '../kernel/handover-policy.js'
import { tellable } from '../kernel/told-error.js'
import { answerOf, readKept } from './answers.js'
import type { Definition } from './definitions.js'
import type { Resume } from './frame.js'
import { stageOver } from './ledger.js'
import { plainCopy } from './plain-json.js'
import { usable } from './usable.js'
import type { ConversationHost, HandoverInfo, HandoverOutcome, TurnScope } from './port.js'
import type { FlowRegistry } from './registry.js'
import type { RunStart } from './run-start.js'

/** What the engine does for an arrival. */
export interface ArrivalHost {
  readonly host: ConversationHost
  readonly registry: FlowRegistry
  begin(scope: TurnScope, start: RunStart, resume: Resume | null): void
  enter(scope: TurnScope, name: string, initial: Record<string, unknown>): Promise<void>
}

export type Resumption = ArrivalDecision & { act: 'resume' }

interface Interrupted {
  name: string
  kind: 'flow' | 'async'
  reason: FallbackReason
  step?: string
  state?: Record<string, unknown>
  initial: Record<string, unknown>
}

/** @returns true if the message was consumed. */
export async function arrive(engine: ArrivalHost, scope: TurnScope): Promise<boolean> {
  const { host, registry } = engine
  const stored = usable(scope, host)
  const name = stored.checkpoint?.name ?? stored.marker?.name
  const definition = name === undefined ? null : registry.find(name)
  const decision = decideArrival(stored, definition, host.options.forward)
  switch (decision.act) {
    case 'route':
      return false
    case 'resume':
      // The policy resumes checkpoints of known flows only.
      if (stored.checkpoint === null || definition === null) return false
      await resume(engine, scope, stored.checkpoint, definition, decision)
      return true
    case 'fallback': {
      const left = stored.checkpoint ?? stored.marker
      if (left === null) return false
      return fallback(engine, scope, describe(left, decision))
    }
  }
}

async function resume(
  engine: ArrivalHost,
  scope: TurnScope,
  checkpoint: FlowCheckpoint,
  definition: Definition,
  decision: Resumption,
): Promise<void> {
  const { host } = engine
  const start = startFrom(engine, scope, checkpoint, definition, decision)
  const how = await resumption(scope, checkpoint, decision.mode, start)
  if (how === 'gone') {
    host.logger.warn(
      { key: scope.key, flow: definition.name },
      'A kept answer is gone: its step starts over.',
    )
  }
  goOn(engine, scope, start, decision, how === 'gone' ? null : how)
}

/** What a run that goes on from a checkpoint begins with. */
export function startFrom(
  { host }: ArrivalHost,
  scope: TurnScope,
  checkpoint: FlowCheckpoint,
  definition: Definition,
  decision: Resumption,
): RunStart {
  return {
    definition,
    state: copyOf(checkpoint.state),
    initial: copyOf(checkpoint.initial ?? {}),
    visit: checkpoint.visit,
    stepName: decision.step,
    touched: !decision.forget,
    stores: definition.persistent || (scope.coordinated && host.options.forward),
    revision: scope.state?.revision ?? null,
  }
}

/** Reports the hand-over and lets the run go on. */
export function goOn(
  engine: ArrivalHost,
  scope: TurnScope,
  start: RunStart,
  decision: Resumption,
  how: Resume | null,
): void {
  // H5: read once, then it is this replica's memory that counts.
  if (decision.forget) stageOver(scope, { checkpoint: null })
  report(engine, scope, start.definition.name, decision.outcome)
  engine.begin(scope, start, how)
}

/** How the step goes on; completes `start` with what goes on with it. `gone`: a kept answer's record is no more. */
async function resumption(
  scope: TurnScope,
  checkpoint: FlowCheckpoint,
  mode: ResumeMode,
  start: RunStart,
): Promise<Resume | 'gone' | null> {
  const message = answerOf(scope)
  const skipSends = checkpoint.wait?.sends ?? 0
  if (mode === 'answer') return message === null ? null : { skipSends, given: message, kept: false }
  const held = await Promise.all((checkpoint.held ?? []).map((kept) => readKept(kept, scope)))
  start.held = held.filter((one) => one !== null)
  // Where others wait already, this message does too; else it is used up by starting the step over (K1).
  const queued =
    message !== null && !beganThis(scope, checkpoint) && (mode === 'kept' || start.held.length > 0)
  if (mode === 'start-over') {
    start.actingRecordId = checkpoint.recordId ?? null
    if (queued) start.held.push(message)
    return null
  }
  const form = checkpoint.answer
  const given = form === undefined ? null : await readKept(form, scope)
  if (form === undefined || given === null) return 'gone'
  if (queued) start.held.push(message)
  start.kept = { form, mark: { question: 0, sends: skipSends, timeoutMs: null } }
  start.actingRecordId = given.recordId
  return { skipSends, given, kept: true }
}

/**
 * The record is worked on again after a death: what began this step, or waits behind it, is in the checkpoint already
 * and is not an answer to what comes next.
 */
function beganThis({ recordId }: TurnScope, { answer, held = [], recordId: began }: FlowCheckpoint): boolean {
  if (recordId === null) return false
  return began === recordId || [answer, ...held].some((one) => one !== undefined && pointsTo(one, recordId))
}

function pointsTo(kept: KeptAnswer, recordId: string): boolean {
  return 'recordId' in kept && kept.recordId === recordId
}

async function fallback(engine: ArrivalHost, scope: TurnScope, was: Interrupted): Promise<boolean> {
  const { host, registry } = engine
  const choice = host.options.fallback
  // Before anything that may enter another conversation: what that one stores comes later and wins.
  stageOver(scope, { checkpoint: null, marker: null })
  if (typeof choice === 'function') return ask(engine, scope, was, choice)
  if (choice === 'notify') {
    report(engine, scope, was.name, 'notified', was.reason)
    await notify(host, scope)
    return true
  }
  if (choice === 'restart' && registry.find(was.name) !== null) {
    report(engine, scope, was.name, 'restarted', was.reason)
    await engine.enter(scope, was.name, was.initial)
    return true
  }
  report(engine, scope, was.name, 'dropped', was.reason)
  return false
}

/** H6: the application's own migration. If it throws, the attempt fails; without attempts the message is routed. */
async function ask(
  engine: ArrivalHost,
  scope: TurnScope,
  was: Interrupted,
  choice: (info: HandoverInfo, ctx: unknown) => boolean | Promise<boolean>,
): Promise<boolean> {
  const { host } = engine
  const { initial: _initial, ...rest } = was
  const info: HandoverInfo = { key: scope.key, ...rest }
  try {
    const act = { current: scope, revoked: null }
    const handled = await host.runIn(act, async () => choice(info, host.contextFor(scope)))
    report(engine, scope, was.name, handled ? 'handled' : 'dropped', was.reason)
    return handled
  } catch (error) {
    scope.fail(tellable(error))
    report(engine, scope, was.name, 'dropped', was.reason)
    return scope.durable
  }
}

async function notify(host: ConversationHost, scope: TurnScope): Promise<void> {
  const lang = scope.hooks?.lang ?? scope.message?.lang
  const text = host.options.notifyMessage ?? host.text('core.conversation.interrupted', lang)
  try {
    await scope.send(text, { step: '@handover', visit: 0, ordinal: 0 })
  } catch (error) {
    scope.fail(error)
  }
}

function describe(
  left: FlowCheckpoint | ConversationMarker,
  decision: ArrivalDecision & { act: 'fallback' },
): Interrupted {
  return {
    name: left.name,
    kind: left.kind,
    reason: decision.reason,
    ...(decision.step === undefined ? {} : { step: decision.step }),
    ...('state' in left ? { state: copyOf(left.state) } : {}),
    initial: copyOf(left.initial ?? {}),
  }
}

function report(
  engine: ArrivalHost,
  scope: TurnScope,
  name: string,
  outcome: HandoverOutcome,
  reason?: FallbackReason,
): void {
  // Without coordination nothing changes hands: a flow goes on after a restart without an event (B1).
  if (!scope.coordinated) return
  engine.host.handedOver({ key: scope.key, name, outcome, ...(reason === undefined ? {} : { reason }) })
}

/** What came from a store is shared with nobody. */
function copyOf(value: Record<string, unknown>): Record<string, unknown> {
  const copied = plainCopy(value, 'state')
  if (copied.plain) return copied.value
  try {
    return structuredClone(value)
  } catch {
    return value // Nested too deeply to be copied, as a broken writer left it: stored it is never again (H3).
  }
}
