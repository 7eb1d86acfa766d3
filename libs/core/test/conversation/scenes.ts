/** Flows and pairs of replicas that several tests play with. */
import type { FlowRegistry, StepContext } from '../../src/conversation/index.js'
import type { ConversationOptions } from '../../src/conversation/port.js'
import { Replica, type ReplicaOptions } from './mini-runtime.js'
import { World } from './world.js'

export type Define = (registry: FlowRegistry) => void

/** Two replicas of the same bot. */
export function pair(define: Define, options: Partial<ConversationOptions> = {}, more: ReplicaOptions = {}) {
  const world = new World()
  const a = new Replica(world, 'a', define, { ...more, options })
  const b = new Replica(world, 'b', define, { ...more, options })
  return { world, a, b }
}

export const persistent: Define = (registry) =>
  void registry
    .flow<{ size: string; address: string }>('order', { on: 'order' })
    .step('size', async (c) => {
      await c.say('Hello')
      c.state.size = await c.ask('Size?', { validate: (m) => m.body !== 'XL' || 'Not XL' })
      await c.say(`Noted ${c.state.size}`)
    })
    .ask('address', 'Address?')
    .step('end', (c) => c.say(`${c.state.size} to ${c.state.address}`))
    .persistent()

export interface Gate {
  opened: Promise<void>
  open(): void
  reached: Promise<void>
  reach(): void
}

export function gate(): Gate {
  let open = (): void => undefined
  let reach = (): void => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  const reached = new Promise<void>((resolve) => (reach = resolve))
  return { opened, open, reached, reach }
}

/** A flow whose work after the first answer lasts until the gate opens; `after` is what its code saw then. */
export function slowFlow(
  registry: FlowRegistry,
  work: () => Gate,
  after: unknown[],
  kind: 'step' | 'do' = 'step',
) {
  const run = async (c: StepContext): Promise<void> => {
    const answer = await c.ask('Size?')
    await c.say(`working on ${answer}`)
    work().reach()
    await work().opened
    await c.say(`done ${answer}`).catch((error: unknown) => after.push(error))
    c.state['size'] = answer
    after.push(c.signal.aborted)
  }
  const flow = registry.flow('order', { on: 'order' })
  void (kind === 'do' ? flow.do('size', run) : flow.step('size', run)).ask('address', 'Address?').persistent()
}

export function setUp(
  define: (registry: FlowRegistry, replica: string) => void,
  more: ReplicaOptions = {},
  options: Partial<ConversationOptions> = {},
) {
  const world = new World()
  const make = (name: string) =>
    new Replica(world, name, (registry) => define(registry, name), { ...more, options })
  return { world, a: make('a'), b: make('b') }
}
