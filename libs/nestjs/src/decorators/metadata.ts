/**
 * What the decorators write and the loaders read. Everything about methods is kept as ordered lists on the class,
 * so that the order declared survives, and wrappers put round a method by other decorators lose nothing.
 */
import 'reflect-metadata'
import type { CommandOptions, FlowOptions, Trigger } from '@botmesh/core'

/** Which bots a class or method belongs to: a name, several, `'*'` for all. Default: the default bot. */
export type BotSelection = string | readonly string[]

export interface FlowMetadata extends FlowOptions {
  name: string
  bot?: BotSelection
}

export interface StepMetadata {
  method: string
  name: string
}

export type HandlerMetadata = { method: string; bot?: BotSelection } & (
  | { kind: 'conversation'; name: string; options: { on?: Trigger } }
  | { kind: 'command'; name: string; options: CommandOptions }
  | { kind: 'hears'; trigger: Trigger }
  | { kind: 'message' }
  | { kind: 'before' }
)

export interface LeaderJobMetadata {
  method: string
  name: string
  bot?: BotSelection
}

const FLOW = Symbol.for('botmesh:flow')
const PERSISTENT = Symbol.for('botmesh:persistent')
const STEPS = Symbol.for('botmesh:steps')
const HANDLERS = Symbol.for('botmesh:handlers')
const JOBS = Symbol.for('botmesh:leader-jobs')

/** Any class, as decorators and discovery meet them. */
export type AnyClass = abstract new (...args: never[]) => object

export function markFlow(type: object, flow: FlowMetadata): void {
  Reflect.defineMetadata(FLOW, flow, type)
}
export function markPersistent(type: object): void {
  Reflect.defineMetadata(PERSISTENT, true, type)
}
export function addStep(type: object, step: StepMetadata): void {
  append(STEPS, type, step)
}
export function addHandler(type: object, handler: HandlerMetadata): void {
  append(HANDLERS, type, handler)
}
export function addLeaderJob(type: object, job: LeaderJobMetadata): void {
  append(JOBS, type, job)
}

/** Reads what the decorators left, inherited classes included: the base's methods come first, in their places. */
export const MetadataAccessor = {
  flow: (type: AnyClass) => Reflect.getMetadata(FLOW, type) as FlowMetadata | undefined,
  persistent: (type: AnyClass) => Reflect.getMetadata(PERSISTENT, type) === true,
  /** A step declared again by a subclass keeps the base's place. */
  steps: (type: AnyClass): StepMetadata[] => byMethod(inherited<StepMetadata>(STEPS, type)),
  /** What a subclass declares for a method replaces what its base declared for it. */
  handlers: (type: AnyClass): HandlerMetadata[] => {
    const levels = inherited<HandlerMetadata>(HANDLERS, type)
    return levels.flatMap((level, index) =>
      level.filter(
        (one) => !levels.slice(index + 1).some((later) => later.some((b) => b.method === one.method)),
      ),
    )
  },
  leaderJobs: (type: AnyClass): LeaderJobMetadata[] => byMethod(inherited<LeaderJobMetadata>(JOBS, type)),
}

function append(key: symbol, type: object, item: object): void {
  const own = (Reflect.getOwnMetadata(key, type) ?? []) as object[]
  Reflect.defineMetadata(key, [...own, item], type)
}

/** The lists of a class and its bases, base first. */
function inherited<T>(key: symbol, type: AnyClass): T[][] {
  const levels: T[][] = []
  for (
    let level: unknown = type;
    typeof level === 'function' && level !== Function.prototype;
    level = Object.getPrototypeOf(level)
  ) {
    const own = Reflect.getOwnMetadata(key, level) as T[] | undefined
    if (own !== undefined) levels.unshift(own)
  }
  return levels
}

function byMethod<T extends { method: string }>(levels: T[][]): T[] {
  const found = new Map<string, T>()
  for (const one of levels.flat()) found.set(one.method, one)
  return [...found.values()]
}
