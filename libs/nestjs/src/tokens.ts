/**
 * Injection tokens (N1). The default bot is injected by the abstract classes of core themselves (`Bot`,
 * `Coordinator`, …); named bots have symbols, registered so that two copies of this package agree on them.
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

/** Token of one part of a bot: a class for the default bot, else a symbol. */
export function tokenOf(part: BotPart, name: string = DEFAULT_BOT): Token | symbol {
  return name === DEFAULT_BOT ? CLASSES[part] : Symbol.for(`botmesh:${part}:${name}`)
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
