/**
 * Injection tokens (N1). The default bot is injected by the abstract classes of core themselves (`Bot`,
 * `Coordinator`, …); named bots have tokens of their own, on which two copies of this package agree. What a token is
 * (a class) may change: whoever needs one asks `getBotToken` and the like for it, and never makes one.
 */
import { Inject } from '@nestjs/common'
import { Bot, CheckpointStore, Coordinator, LeaderElection, TurnQueue } from '@botmesh/core'

export const DEFAULT_BOT = 'default'

type Token = abstract new (...args: never[]) => unknown

const CLASSES = {
  bot: Bot,
  coordinator: Coordinator,
  turns: TurnQueue,
  elections: LeaderElection,
  checkpoints: CheckpointStore,
} as const satisfies Record<string, Token>

export type BotPart = keyof typeof CLASSES

export const BOT_PARTS = Object.keys(CLASSES) as BotPart[]

/** What all copies of this package in a process have in common. */
interface Shared {
  tokens: Map<string, Token>
  /**
   * Names that a `forRoot` or `forRootAsync` has given. They stay when an application closes: most are given once, where
   * a module class is declared, from which any number of applications is made.
   */
  names: Set<string>
}

const SHARED = Symbol.for('botmesh:nestjs:tokens')

function shared(): Shared {
  const all = globalThis as { [SHARED]?: Shared }
  return (all[SHARED] ??= { tokens: new Map(), names: new Set() })
}

/** Token of one part of a bot: that of core for the default bot. */
export function tokenOf(part: BotPart, name: string = DEFAULT_BOT): Token {
  if (name === DEFAULT_BOT) return CLASSES[part]
  const { tokens } = shared()
  const key = `${part}:${name}`
  const token = tokens.get(key) ?? namedToken(part, name)
  tokens.set(key, token)
  return token
}

/** From now on errors list this bot among those that there are. */
export function noteName(name: string): void {
  shared().names.add(name)
}

/** A token whose name tells a reader of Nest's own error what there would have been: it is all that Nest asks of it. */
function namedToken(part: BotPart, name: string): Token {
  const token = class {}
  Object.defineProperty(token, 'name', {
    get: () => {
      const { names } = shared()
      const what = `${CLASSES[part].name} "${name}"`
      return names.has(name)
        ? what
        : `${what} (no bot has that name; bots: ${[...names].join(', ') || 'none'})`
    },
  })
  return token
}

/** Token of the bot called `name`; for `ModuleRef.get` and for overriding in tests. */
export const getBotToken = (name?: string) => tokenOf('bot', name)
/** Token of the coordinator of the bot called `name`. */
export const getCoordinatorToken = (name?: string) => tokenOf('coordinator', name)
/** Token of the store of the bot called `name`. */
export const getCheckpointStoreToken = (name?: string) => tokenOf('checkpoints', name)

/** Injects the bot called `name`. */
export const InjectBot = (name?: string): ParameterDecorator & PropertyDecorator => Inject(getBotToken(name))
/** Injects the coordinator of the bot called `name`. */
export const InjectCoordinator = (name?: string): ParameterDecorator & PropertyDecorator =>
  Inject(getCoordinatorToken(name))
/** Injects the store of the bot called `name`. */
export const InjectCheckpointStore = (name?: string): ParameterDecorator & PropertyDecorator =>
  Inject(getCheckpointStoreToken(name))
