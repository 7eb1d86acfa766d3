/** Turns `@Flow` classes into flows of their bots. */
import { ConfigError, type Bot } from '@botmesh/core'
import type { BotRegistry } from '../bot-registry.js'
import { MetadataAccessor, type FlowMetadata } from '../decorators/metadata.js'
import type { Found } from './provider-scan.js'

type Method = (...args: unknown[]) => unknown

export class FlowLoader {
  /** `bot/flow` → class, to name both culprits. */
  private readonly taken = new Map<string, string>()

  constructor(private readonly registry: BotRegistry) {}

  /**
   * @throws ConfigError: a flow without steps, steps without a flow, a class that is no singleton, two flows of one
   * name on one bot, two steps of one name, an unknown bot.
   */
  load(found: Found): void {
    const { type } = found
    const flow = MetadataAccessor.flow(type)
    const steps = MetadataAccessor.steps(type)
    if (flow === undefined) {
      if (steps.length === 0 && !MetadataAccessor.persistent(type)) return
      throw new ConfigError(`Class ${type.name} has @Step() or @Persistent() but no @Flow('name').`, {
        option: '@Flow',
      })
    }
    if (found.instance === null) {
      throw new ConfigError(
        `Flow "${flow.name}": class ${type.name} is request-scoped or transient (or injects something that is); flows are singletons, keep their state in c.state.`,
        { option: '@Flow', value: flow.name },
      )
    }
    if (steps.length === 0) {
      throw new ConfigError(`Flow "${flow.name}": class ${type.name} has no @Step() method.`, {
        option: '@Step',
        value: flow.name,
      })
    }
    this.refuseDoubles(flow, type.name, steps)
    for (const { bot, name } of this.registry.select(flow.bot, `Flow "${flow.name}" (class ${type.name})`)) {
      this.claim(flow.name, name, found)
      define(bot, flow, steps, found.instance, MetadataAccessor.persistent(type))
    }
  }

  private claim(flow: string, bot: string, found: Found): void {
    const key = JSON.stringify([bot, flow])
    const owner = `${found.type.name} in ${found.module}`
    const other = this.taken.get(key)
    if (other !== undefined) {
      throw new ConfigError(
        `Two flows are called "${flow}" on bot "${bot}": ${other} and ${owner}. Rename one, or list the class in one module only.`,
        { option: '@Flow', value: flow },
      )
    }
    this.taken.set(key, owner)
  }

  private refuseDoubles(flow: FlowMetadata, owner: string, steps: { name: string; method: string }[]): void {
    for (const [index, step] of steps.entries()) {
      const other = steps.slice(0, index).find((one) => one.name === step.name)
      if (other === undefined) continue
      throw new ConfigError(
        `Flow "${flow.name}": ${owner}.${other.method} and ${owner}.${step.method} are both step "${step.name}".`,
        { option: '@Step', value: step.name },
      )
    }
  }
}

function define(
  bot: Bot,
  flow: FlowMetadata,
  steps: { name: string; method: string }[],
  instance: object,
  persistent: boolean,
): void {
  const { name, on } = flow
  bot.define({
    name,
    ...(on === undefined ? {} : { on }),
    persistent,
    steps: steps.map((step) => {
      const method = () => Reflect.get(instance, step.method) as Method
      // Looked up at each call, so that a test's spy is what runs.
      return { name: step.name, run: (c) => method().call(instance, c), source: method() }
    }),
  })
}
