/** Definitions of flows and conversations as data: what builders, decorators and plain objects all become. */
import { ConfigError } from '../contracts/errors.js'
import type { Message, Outgoing } from '../contracts/message.js'
import { describeValue } from '../kernel/duration.js'
import { fingerprintOf, type StepShape } from '../kernel/flow-fingerprint.js'
import type { DefinitionFacts } from '../kernel/handover-policy.js'
import { refuseUnknownOptions, requireText } from '../kernel/options.js'
import { Directive, type ConversationContext, type HandlerContext, type StepContext } from './contexts.js'

/**
 * Messages that enter a flow: a text (the whole trimmed body, case ignored), a pattern (anywhere in the body unless
 * anchored), or several of them.
 */
export type FlowTrigger = string | RegExp | readonly (string | RegExp)[]

/** What is said to ask; a function computes it when the step runs. */
export type Question<State extends object> =
  Outgoing | ((c: StepContext<State>) => Outgoing | Promise<Outgoing>)

export interface StepDefinition<State extends object = Record<string, unknown>> {
  name: string
  /** Returning goes on to the next step; `c.goto()` and `c.end()` are to be returned. */
  run(c: StepContext<State>): unknown
  /** Default `step`. */
  kind?: StepShape['kind']
  /** Names of a form's questions. */
  fields?: readonly string[]
  /** Whose source text is searched for `c.goto('…')` at start, where `run` only calls it (a class's method). */
  source?: (...args: never[]) => unknown
}

export interface FlowDefinition<State extends object = Record<string, unknown>> {
  name: string
  on?: FlowTrigger
  /** Stored at every step, and goes on on another replica (K1). Default false. */
  persistent?: boolean
  steps: readonly StepDefinition<State>[]
}

export interface ConversationDefinition<State extends object = Record<string, unknown>> {
  name: string
  on?: FlowTrigger
  run(c: ConversationContext<State>, ctx: HandlerContext): unknown
}

/** A step as the engine runs it. */
export interface Step extends StepShape {
  run(c: StepContext): unknown
  source: (...args: never[]) => unknown
}

/** A flow or conversation as the engine runs it: checked and frozen. */
export interface Definition extends DefinitionFacts {
  name: string
  matches(body: string): boolean
  /** Steps by name, in order; empty for an asynchronous conversation. */
  stepsByName: ReadonlyMap<string, Step>
  /** Of an asynchronous conversation. */
  run(c: ConversationContext, ctx: HandlerContext): unknown
}

/**
 * Checks a definition given as an object, so that its mistakes show where it stands rather than at start.
 * @throws ConfigError
 */
export function defineFlow<State extends object = Record<string, unknown>>(
  definition: FlowDefinition<State>,
): FlowDefinition<State> {
  compileFlow(definition as unknown as FlowDefinition)
  return definition
}

/** @throws ConfigError for an unusable name or trigger, no steps, two steps of one name, a step without code. */
export function compileFlow(definition: FlowDefinition): Definition {
  refuseUnknownOptions('A flow', definition, ['name', 'on', 'persistent', 'steps'])
  const name = requireText('name', definition.name, 'the name of a flow')
  if (!Array.isArray(definition.steps) || definition.steps.length === 0) {
    throw new ConfigError(`Flow "${name}" has no steps; add at least one.`, { option: name })
  }
  const stepsByName = new Map<string, Step>()
  for (const step of definition.steps) {
    const stepName = requireText(`step of flow "${name}"`, step.name, 'a name')
    if (typeof step.run !== 'function') {
      throw new ConfigError(
        `Step "${stepName}" of flow "${name}" is ${describeValue(step.run)}; accepted: a function.`,
        { option: stepName },
      )
    }
    if (stepsByName.has(stepName)) {
      throw new ConfigError(`Flow "${name}" has two steps named "${stepName}".`, { option: stepName })
    }
    stepsByName.set(stepName, {
      name: stepName,
      kind: step.kind ?? 'step',
      ...(step.fields === undefined ? {} : { fields: [...step.fields] }),
      run: (c) => step.run(c),
      source: step.source ?? step.run,
    })
  }
  const steps = [...stepsByName.values()]
  return {
    name,
    kind: 'flow',
    persistent: definition.persistent === true,
    matches: compileTrigger(name, definition.on),
    steps: [...stepsByName.keys()],
    stepsByName,
    fingerprint: fingerprintOf(steps),
    run: () => undefined,
  }
}

/** @throws ConfigError */
export function compileConversation(definition: ConversationDefinition): Definition {
  refuseUnknownOptions('A conversation', definition, ['name', 'on', 'run'])
  const name = requireText('name', definition.name, 'the name of a conversation')
  const code: unknown = definition['run']
  if (typeof code !== 'function') {
    throw new ConfigError(`Conversation "${name}" is ${describeValue(code)}; accepted: a function.`, {
      option: name,
    })
  }
  return {
    name,
    kind: 'async',
    persistent: false,
    matches: compileTrigger(name, definition.on),
    steps: [],
    stepsByName: new Map(),
    fingerprint: '',
    run: (c, ctx) => definition.run(c, ctx),
  }
}

/** How triggers compare texts: surrounding space and case do not matter. */
function normalise(text: string): string {
  return text.normalize('NFC').trim().toLowerCase()
}

/** @throws ConfigError */
function compileTrigger(name: string, on: FlowTrigger | undefined): (body: string) => boolean {
  const all: readonly unknown[] = on === undefined ? [] : Array.isArray(on) ? on : [on]
  const texts = new Set<string>()
  const patterns: RegExp[] = []
  for (const one of all) {
    if (typeof one === 'string' && one.trim() !== '') texts.add(normalise(one))
    // A copy without `g` and `y`: those remember where the last match ended.
    else if (one instanceof RegExp) patterns.push(new RegExp(one.source, one.flags.replace(/[gy]/g, '')))
    else {
      const accepted = 'a non-empty text, a RegExp, or an array of them'
      throw new ConfigError(`Option "on" of "${name}" is ${describeValue(one)}; accepted: ${accepted}.`, {
        option: 'on',
        value: one,
        accepted,
      })
    }
  }
  return (body) =>
    (texts.size > 0 && texts.has(normalise(body))) || patterns.some((pattern) => pattern.test(body))
}

/** What enters a flow is what somebody wrote or chose, whatever its form. */
export function matchesMessage(definition: Definition, message: Message): boolean {
  return message.body !== '' && definition.matches(message.body)
}

/** @returns null if there is no such step. */
export function stepNamed(definition: Definition, name: string | null): Step | null {
  return name === null ? null : (definition.stepsByName.get(name) ?? null)
}

/** The step after `step` returned `value`; null: the end. An asynchronous conversation has no steps. */
export function nextStep(definition: Definition, step: Step | null, value: unknown): Step | null {
  if (value instanceof Directive) return value.kind === 'end' ? null : stepNamed(definition, value.step)
  if (step === null) return null
  return stepNamed(definition, definition.steps[definition.steps.indexOf(step.name) + 1] ?? null)
}
