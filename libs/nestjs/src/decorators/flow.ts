/** `@Flow`, `@Step`, `@Persistent`: a flow as an injectable class (N2). */
import { Injectable } from '@nestjs/common'
import { ConfigError, describeValue, refuseUnknownOptions, type FlowOptions } from '@botmesh/core'
import { addStep, markFlow, markPersistent, type BotSelection } from './metadata.js'
import { refuseBareUse } from '../mistakes.js'
import { methodOf } from './method-of.js'

export interface FlowDecoratorOptions extends FlowOptions {
  /** The bots that have this flow: a name, several, or `'*'` for every one. Default: the default bot. */
  bot?: BotSelection
}

/** Nest's own mark of an injectable class. */
const INJECTABLE = '__injectable__'

/**
 * Makes a class a flow. Implies `@Injectable()`; the class must be a singleton among a module's providers, because
 * its state is `c.state`, never `this`.
 * @param name under which it is entered (`ctx.enter(name)`) and stored in checkpoints.
 * @throws ConfigError for an unknown option.
 */
export function Flow(name: string, options: FlowDecoratorOptions = {}): ClassDecorator {
  refuseBareUse('Flow', "@Flow('order')", name)
  if (typeof name !== 'string' || name === '') {
    throw new ConfigError(`@Flow() has ${describeValue(name)} for a name; write @Flow('order').`, {
      option: '@Flow',
    })
  }
  refuseUnknownOptions(`@Flow("${name}")`, options, ['on', 'bot'])
  return (type) => {
    // Only if nobody said it before: a scope given by the class's own @Injectable must stay visible.
    if (!Reflect.hasOwnMetadata(INJECTABLE, type)) Injectable()(type)
    markFlow(type, { ...options, name })
  }
}

/**
 * A step of the flow; steps run in the order declared, those of a base class first.
 * @param name kept in checkpoints; default the method's name. Give it when a method is renamed.
 */
export function Step(name?: string): MethodDecorator {
  refuseBareUse('Step', '@Step()', name)
  return (prototype, key, descriptor) => {
    const method = methodOf('Step', prototype, key, descriptor)
    addStep(prototype.constructor, { method, name: name ?? method })
  }
}

/** The flow's checkpoints are kept: it survives restarts and goes on at another replica (K1). */
export function Persistent(...bare: never[]): ClassDecorator {
  refuseBareUse('Persistent', '@Persistent()', bare[0])
  return (type) => markPersistent(type)
}
