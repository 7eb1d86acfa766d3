/** All flows and conversations of one bot: declared until start, then checked and frozen. */
import { ConfigError } from '../contracts/errors.js'
import type { Message } from '../contracts/message.js'
import { nearestName, refuseUnknownOptions, requireText } from '../kernel/options.js'
import type { ConversationContext, HandlerContext } from './contexts.js'
import {
  compileConversation,
  compileFlow,
  matchesMessage,
  type ConversationDefinition,
  type Definition,
  type FlowDefinition,
  type FlowTrigger,
} from './definitions.js'
import { FlowBuilder, type FlowBuilderOptions } from './flow-builder.js'
import { literalGotos } from './goto-check.js'

type Source = { builder: FlowBuilder } | { flow: FlowDefinition } | { conversation: ConversationDefinition }

export class FlowRegistry {
  readonly #sources: Source[] = []
  #definitions: Map<string, Definition> | null = null
  #persists = false

  /** `bot.flow`. @throws ConfigError after start. */
  flow<State extends object = Record<string, unknown>>(
    name: string,
    options: FlowBuilderOptions = {},
  ): FlowBuilder<State> {
    requireText('name', name, 'the name of a flow')
    refuseUnknownOptions(`Flow "${name}"`, options, ['on'])
    const builder = new FlowBuilder<State>(name, options)
    this.#declare(name, { builder: builder as unknown as FlowBuilder })
    return builder
  }

  /** `bot.conversation`: an asynchronous function that can ask. @throws ConfigError after start. */
  conversation<State extends object = Record<string, unknown>>(
    name: string,
    run: (c: ConversationContext<State>, ctx: HandlerContext) => unknown,
    options: { on?: FlowTrigger } = {},
  ): void {
    refuseUnknownOptions(`Conversation "${name}"`, options, ['on'])
    this.add<State>({ name, run, ...options })
  }

  /** Adds a definition given as an object. @throws ConfigError after start. */
  add<State extends object = Record<string, unknown>>(
    definition: FlowDefinition<State> | ConversationDefinition<State>,
  ): void {
    if ('run' in definition) {
      this.#declare(definition.name, { conversation: definition as unknown as ConversationDefinition })
    } else this.#declare(definition.name, { flow: definition as unknown as FlowDefinition })
  }

  /** Idempotent. @throws ConfigError that names the flow, and the step where there is one. */
  freeze(): void {
    if (this.#definitions !== null) return
    const definitions = new Map<string, Definition>()
    for (const source of this.#sources) {
      const definition = compile(source)
      if (definitions.has(definition.name)) {
        throw new ConfigError(`Two flows or conversations are named "${definition.name}".`, {
          option: definition.name,
        })
      }
      checkGotos(definition)
      definitions.set(definition.name, definition)
    }
    for (const source of this.#sources) if ('builder' in source) source.builder.freeze()
    this.#persists = [...definitions.values()].some((definition) => definition.persistent)
    this.#definitions = definitions
  }

  /** True if any flow is stored even without coordination. */
  get persists(): boolean {
    this.freeze()
    return this.#persists
  }

  find(name: string): Definition | null {
    return this.#frozen().get(name) ?? null
  }

  /** @throws ConfigError that suggests the nearest name. */
  require(name: string): Definition {
    const found = this.find(name)
    if (found !== null) return found
    const known = [...this.#frozen().keys()]
    throw unknownName(`There is no flow or conversation "${name}"`, name, known)
  }

  /** The first definition, in the order declared, whose `on` the message meets. */
  triggeredBy(message: Message): string | null {
    for (const definition of this.#frozen().values()) {
      if (matchesMessage(definition, message)) return definition.name
    }
    return null
  }

  #declare(name: string, source: Source): void {
    if (this.#definitions !== null) {
      throw new ConfigError(
        `"${name}" cannot be added any more: the bot has started. Define flows before bot.start().`,
        { option: name },
      )
    }
    this.#sources.push(source)
  }

  #frozen(): Map<string, Definition> {
    this.freeze()
    return this.#definitions ?? new Map<string, Definition>()
  }
}

function compile(source: Source): Definition {
  if ('builder' in source) return compileFlow(source.builder.definition())
  return 'flow' in source ? compileFlow(source.flow) : compileConversation(source.conversation)
}

function checkGotos(definition: Definition): void {
  for (const step of definition.stepsByName.values()) {
    for (const target of literalGotos(step.source)) {
      if (definition.stepsByName.has(target)) continue
      const where = `Step "${step.name}" of flow "${definition.name}" goes to "${target}", which the flow does not have`
      throw unknownName(where, target, definition.steps)
    }
  }
}

/** @param what the complaint, without its full stop. */
export function unknownName(what: string, name: string, known: readonly string[]): ConfigError {
  const near = nearestName(name, known)
  const hint = near === undefined ? '' : `; did you mean "${near}"?`
  return new ConfigError(`${what}${hint === '' ? '.' : hint} Known: ${known.join(', ') || 'none'}.`, {
    option: name,
    accepted: known.join(', '),
  })
}
