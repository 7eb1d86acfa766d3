/** `bot.flow(name, options)`: a flow written as a chain of steps (B3). Frozen at start. */
import { ConfigError } from '../contracts/errors.js'
import type { Duration } from '../contracts/coordinator.js'
import type { Outgoing } from '../contracts/message.js'
import { describeValue } from '../kernel/duration.js'
import type { AskOptions, StepContext, Validator } from './contexts.js'
import type { FlowDefinition, FlowTrigger, Question, StepDefinition } from './definitions.js'

export interface FlowBuilderOptions {
  /** Messages that enter the flow when no conversation takes them. */
  on?: FlowTrigger
}

/** One question of a form; its answer's text becomes `c.state[name]`. */
export interface FormField<State extends object> {
  name: string & keyof State
  question: Question<State>
  validate?: Validator
  timeout?: Duration | null
  maxAttempts?: number
}

type StepRun<State extends object> = (c: StepContext<State>) => unknown

export class FlowBuilder<State extends object = Record<string, unknown>> {
  readonly name: string
  readonly #on: FlowTrigger | undefined
  readonly #steps: StepDefinition<State>[] = []
  #persistent = false
  #frozen = false

  constructor(name: string, options: FlowBuilderOptions = {}) {
    this.name = name
    this.#on = options.on
  }

  /** A step: runs `run`, which may ask any number of questions. Returning goes on to the next step. */
  step(name: string, run: StepRun<State>): this {
    return this.#add({ name, kind: 'step', run })
  }

  /** A step that asks one question; the answer's text becomes `c.state[name]`. */
  ask(name: string & keyof State, question: Question<State>, options?: AskOptions): this {
    const run = async (c: StepContext<State>): Promise<void> => {
      const answer = await c.ask(await resolveQuestion(question, c), options)
      Object.assign(c.state, { [name]: answer })
    }
    // For those who read code (`c.goto`, `ctx.user`): a fixed question has none of the application's.
    const source = typeof question === 'function' ? question : () => undefined
    return this.#add({ name, kind: 'ask', run, source })
  }

  /**
   * A step of work: what came before it is stored before it runs, so that a crash repeats this step only. Under
   * coordination it has `settleMs`. At least once (H11). Without a name it is called `do-<position>`.
   */
  do(name: string, run: StepRun<State>): this
  do(run: StepRun<State>): this
  do(name: string | StepRun<State>, run?: StepRun<State>): this {
    return typeof name === 'function'
      ? this.#add({ name: `do-${this.#steps.length + 1}`, kind: 'do', run: name })
      : this.#add({ name, kind: 'do', run: run as StepRun<State> })
  }

  /**
   * A form in text mode: several questions in one step, asked one after the other. Handed over within it, it starts
   * over at its first question (H11).
   */
  form(name: string, fields: readonly FormField<State>[]): this {
    if (!Array.isArray(fields) || fields.length === 0) {
      const accepted = 'an array of { name, question }'
      throw new ConfigError(
        `Form "${name}" of flow "${this.name}" is ${describeValue(fields)}; accepted: ${accepted}.`,
        { option: name, accepted },
      )
    }
    const run = async (c: StepContext<State>): Promise<void> => {
      for (const { name: field, question, ...options } of fields) {
        Object.assign(c.state, { [field]: await c.ask(await resolveQuestion(question, c), options) })
      }
    }
    return this.#add({ name, kind: 'form', fields: fields.map((field) => field.name), run })
  }

  /** The flow is stored at every step and goes on on another replica, or after a restart (K1). */
  persistent(): this {
    this.#refuseFrozen()
    this.#persistent = true
    return this
  }

  /** The definition so far. */
  definition(): FlowDefinition<State> {
    return {
      name: this.name,
      ...(this.#on === undefined ? {} : { on: this.#on }),
      persistent: this.#persistent,
      steps: [...this.#steps],
    }
  }

  /** From now on changes throw. Called at start. */
  freeze(): void {
    this.#frozen = true
  }

  #add(step: StepDefinition<State>): this {
    this.#refuseFrozen()
    this.#steps.push(step)
    return this
  }

  #refuseFrozen(): void {
    if (!this.#frozen) return
    throw new ConfigError(
      `Flow "${this.name}" cannot change any more: the bot has started. Define flows before bot.start().`,
      { option: this.name },
    )
  }
}

async function resolveQuestion<State extends object>(
  question: Question<State>,
  c: StepContext<State>,
): Promise<Outgoing> {
  return typeof question === 'function' ? question(c) : question
}
