/**
 * What a bot says of its own life: that it serves, stands by, drains, has drained or not (one line of the log each), or
 * does not run.
 */
import { CoordinationUnavailableError } from '../contracts/errors.js'
import type { Drained } from '../runtime/drain.js'
import type { BotStatus } from './face.js'
import type { ResolvedOptions } from './options.js'

/** Chats that one line names at most. */
const NAMED_CHATS = 10

/** Nothing of what chats say: who it is, which replica, over which transport. */
function note(
  { logger, name, coordinator, provider }: ResolvedOptions,
  message: string,
  more = {},
  level: 'info' | 'warn' = 'info',
): void {
  const replica = coordinator === null ? {} : { replica: coordinator.replicaId }
  logger[level]({ bot: name, ...replica, provider: provider.id, ...more }, message)
}

/** How it takes part: what an operator compares between replicas. */
function part({ coordinator, exclusive }: ResolvedOptions): object {
  const coordinated = coordinator !== null
  return { exclusive, coordinated, ...(coordinated ? { incarnation: coordinator.incarnation } : {}) }
}

/** Its transport is connected. */
export const noteServing = (options: ResolvedOptions): void => note(options, 'the bot serves', part(options))

export const noteStandby = (options: ResolvedOptions): void =>
  note(options, 'the bot stands by: its transport is connected on another replica', part(options))

/** @param inFlight messages that are being handled or wait. */
export const noteDraining = (options: ResolvedOptions, inFlight: number): void =>
  note(options, 'the bot drains', { inFlight, drainMs: options.drainMs })

/** @param since monotonic time at which it began to stop. */
export const noteNeverStarted = (options: ResolvedOptions, since: number): void =>
  note(options, 'the bot was stopped before it had started', { ms: msSince(options, since) })

const msSince = ({ clock }: ResolvedOptions, since: number): number => Math.round(clock.monotonic() - since)

/**
 * A stop that ran out of time is a warning: whoever waits for the drain would else take cut work for finished.
 * @param since monotonic time at which it began to stop.
 */
export function noteDrained(options: ResolvedOptions, drained: Drained, since: number): void {
  const ms = msSince(options, since)
  const { finished, cut, disconnected } = drained
  if (finished && disconnected) return note(options, 'the bot has drained', { ms })
  const chats = cut.slice(0, NAMED_CHATS)
  note(
    options,
    'the bot has stopped, but its time (drainMs) ran out before it had drained',
    { ms, finished, disconnected, cut: cut.length, ...(chats.length === 0 ? {} : { chats }) },
    'warn',
  )
}

/** What a start rejects with that a stop has overtaken. */
export function stoppedAtStart(bot: string): CoordinationUnavailableError {
  return new CoordinationUnavailableError('stopped', {
    text: `Bot "${bot}" was stopped before it had started.`,
  })
}

/** For a call that needs a running bot. */
export function notRunning(bot: string, status: BotStatus): CoordinationUnavailableError {
  const text =
    status === 'idle' || status === 'starting'
      ? `Bot "${bot}" was not started yet: await bot.start() first or, where something else starts it, bot.ready.`
      : `Bot "${bot}" is stopped: it can send again after bot.start().`
  return new CoordinationUnavailableError('stopped', { text })
}
