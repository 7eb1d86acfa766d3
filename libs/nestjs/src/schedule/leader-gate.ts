/**
 * Connects a decorated method to the elections of the application that its instance lives in: several applications
 * may share one process and one class.
 */
import { ConfigError } from '@botmesh/core'

export interface LeaderGate {
  /** Runs `work` if this replica leads the job; else resolves to undefined. */
  run(job: string, work: () => unknown): Promise<unknown>
}

const gates = new WeakMap<object, LeaderGate>()

export function bindGate(instance: object, gate: LeaderGate): void {
  gates.set(instance, gate)
}

/** @throws ConfigError if no application has bound the instance. */
export async function runAsLeader(instance: object, job: string, work: () => unknown): Promise<unknown> {
  const gate = gates.get(instance)
  if (gate !== undefined) return await gate.run(job, work)
  const owner = instance?.constructor?.name ?? 'a class'
  throw new ConfigError(
    `@LeaderOnly() job "${job}" of ${owner} ran outside of an application with BotmeshModule: import BotmeshModule, and list ${owner} among a module's providers (singleton scope).`,
    { option: '@LeaderOnly' },
  )
}
