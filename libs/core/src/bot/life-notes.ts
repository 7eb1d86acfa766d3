/** What a bot says of its own life: that it serves, stands by, has drained (one line of the log each), or does not run. */
import { CoordinationUnavailableError } from '../contracts/errors.js'
import type { BotStatus } from './face.js'
import type { ResolvedOptions } from './options.js'

/** Nothing of chats: who it is, which replica, over which transport. */
function note({ logger, name, coordinator, provider }: ResolvedOptions, message: string, more = {}): void {
  const replica = coordinator === null ? {} : { replica: coordinator.replicaId }
  logger.info({ bot: name, ...replica, provider: provider.id, ...more }, message)
}

/** Its transport is connected. */
export const noteServing = (options: ResolvedOptions): void => note(options, 'the bot serves')

export const noteStandby = (options: ResolvedOptions): void =>
  note(options, 'the bot stands by: its transport is connected on another replica')

/** @param since monotonic time at which it began to stop. */
export function noteDrained(options: ResolvedOptions, since: number): void {
  note(options, 'the bot has drained', { ms: Math.round(options.clock.monotonic() - since) })
}

/** For a call that needs a running bot. */
export function notRunning(bot: string, status: BotStatus): CoordinationUnavailableError {
  const text =
    status === 'idle' || status === 'starting'
      ? `Bot "${bot}" was not started yet: await bot.start() first or, where something else starts it, bot.ready.`
      : `Bot "${bot}" is stopped: it can send again after bot.start().`
  return new CoordinationUnavailableError('stopped', { text })
}
