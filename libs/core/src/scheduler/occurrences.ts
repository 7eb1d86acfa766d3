/**
 * When a task runs: intervals and cron expressions. Pure: asked for an instant, they answer with others.
 *
 * Daylight saving, by expressions of fixed hours and minutes (numbers, lists and ranges, no `*` among them): what
 * falls into the hour that is left out comes right after it; what falls into the hour that comes twice comes once, the
 * first time. Expressions with `*` follow time as it passes: every 20 minutes is every 20 minutes.
 */
import { Cron } from 'croner'
import { ConfigError } from '../contracts/errors.js'
import { describeValue } from '../kernel/duration.js'

export interface Occurrences {
  /** Whose milliseconds plain tasks count by: an interval must not stand still because somebody set the time of day
   * back. Durable tasks always count by the time of day, which replicas share. */
  readonly clock: 'monotonic' | 'now'
  /** Says the plan in words: replicas compare it, and a task whose plan has changed begins anew. */
  readonly plan: string
  /** Length of an interval; null for cron. */
  readonly everyMs: number | null
  /** The first one after `afterMs`; null if there is none. For an interval `afterMs` must be an occurrence itself. */
  next(afterMs: number): number | null
  /** At most `count` of those after `afterMs` and before `beforeMs`, newest first. For an interval as above. */
  last(count: number, afterMs: number, beforeMs: number): number[]
}

/** Every so many milliseconds, first after one interval. */
export function interval(ms: number): Occurrences {
  return {
    clock: 'monotonic',
    plan: `every ${ms} ms`,
    everyMs: ms,
    next: (afterMs) => afterMs + ms,
    last: (count, afterMs, beforeMs) => {
      const all = Math.max(0, Math.ceil((beforeMs - afterMs) / ms) - 1)
      return Array.from({ length: Math.min(count, all) }, (_, back) => afterMs + (all - back) * ms)
    },
  }
}

/** @throws ConfigError that shows the expression or the time zone. */
export function cron(expression: string, timeZone: string | undefined): Occurrences {
  const zone = checkZone(timeZone)
  const parsed = parse(expression, zone)
  return {
    clock: 'now',
    plan: `cron ${expression.trim()} in ${zone}`,
    everyMs: null,
    next: (afterMs) => parsed.nextRun(new Date(afterMs))?.getTime() ?? null,
    last: (count, afterMs, beforeMs) =>
      parsed
        .previousRuns(count, new Date(beforeMs))
        .map((date) => date.getTime())
        .filter((at) => at > afterMs),
  }
}

function checkZone(timeZone: string | undefined): string {
  try {
    return new Intl.DateTimeFormat('en', timeZone === undefined ? {} : { timeZone }).resolvedOptions()
      .timeZone
  } catch (error) {
    const accepted = "an IANA time zone, such as 'Europe/Madrid'"
    throw new ConfigError(
      `Option "timeZone" is ${describeValue(timeZone)}; accepted: ${accepted}.`,
      { option: 'timeZone', value: timeZone, accepted },
      error,
    )
  }
}

function parse(expression: string, timezone: string): Cron {
  const accepted = "five or six cron fields, such as '0 9 * * 1-5'"
  const details = { option: 'schedule', value: expression, accepted }
  const what = `The schedule ${describeValue(expression)}`
  let parsed: Cron
  let first: Date | null
  try {
    parsed = new Cron(expression, { paused: true, timezone, fixedTimeRule: 'no-wildcard' })
    first = parsed.nextRun()
  } catch (error) {
    const why = error instanceof Error ? ` (${error.message.replace(/^CronPattern: /, '')})` : ''
    throw new ConfigError(`${what} cannot be read${why}; accepted: ${accepted}.`, details, error)
  }
  if (first === null) throw new ConfigError(`${what} never comes; accepted: ${accepted}.`, details)
  return parsed
}
