/**
 * `@LeaderOnly`: a scheduled method runs on one replica only (N6). It may stand above or below `@Cron`, `@Interval`
 * and `@Timeout`: below, they mark the wrapper; above, what they marked on the method is copied to it.
 */
import 'reflect-metadata'
import { refuseUnknownOptions } from '@botmesh/core'
import { runAsLeader } from '../schedule/leader-gate.js'
import { addLeaderJob, type BotSelection } from './metadata.js'
import { refuseBareUse } from '../mistakes.js'
import { methodOf } from './method-of.js'

export interface LeaderOnlyOptions {
  /** Whose coordinator elects. Default: the default bot. */
  bot?: string
}

/**
 * Replicas elect one leader per name, for as long as it lives; elsewhere a call resolves to undefined at once.
 * Without coordination every process is its own leader. An occurrence that falls between a leader's death and the
 * next election (at most `leaseMs`) is missed: what must not be missed belongs to the scheduler (`bot.schedule` with an
 * `id`). It is the method that is wrapped, so a job made by hand that calls it is led too; for other functions of such
 * jobs there is `LeaderJobs.wrap`.
 * @param name of the job; the election is `job:<name>`. Default `Class.method`.
 */
export function LeaderOnly(name?: string, options: LeaderOnlyOptions = {}): MethodDecorator {
  refuseBareUse('LeaderOnly', "@LeaderOnly('report')", name)
  refuseUnknownOptions('@LeaderOnly()', options, ['bot'])
  return (prototype, key, descriptor) => {
    const method = methodOf('LeaderOnly', prototype, key, descriptor)
    const type = prototype.constructor
    const job = name ?? `${type.name}.${method}`
    const selection: { bot?: BotSelection } = options.bot === undefined ? {} : { bot: options.bot }
    addLeaderJob(type, { method, name: job, ...selection })
    const original = descriptor.value as unknown as (...args: unknown[]) => unknown
    const wrapped = function (this: object, ...args: unknown[]): Promise<unknown> {
      return runAsLeader(this, job, () => original.apply(this, args))
    }
    for (const mark of Reflect.getMetadataKeys(original) as unknown[]) {
      Reflect.defineMetadata(mark, Reflect.getMetadata(mark, original), wrapped)
    }
    Object.defineProperty(wrapped, 'name', { value: method, configurable: true })
    descriptor.value = wrapped as unknown as typeof descriptor.value
  }
}
