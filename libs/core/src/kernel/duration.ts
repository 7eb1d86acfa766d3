/** Durations as users write them: milliseconds, or `'500ms'`, `'15s'`, `'2m'`, `'1h'`, `'1d'`. */
import ms from 'ms'
import { ConfigError } from '../contracts/errors.js'
import type { Duration } from '../contracts/coordinator.js'

const FORM = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/
const LONGEST_MS = 2 ** 31 - 1

/**
 * Reads a duration option.
 * @param option its name, for the error.
 * @param limits.minMs smallest accepted, default 0. @param limits.maxMs largest accepted, default 24.8 days (timers).
 * @returns whole milliseconds.
 * @throws ConfigError that names the option, the value and what is accepted.
 */
export function parseDuration(
  option: string,
  value: unknown,
  limits: { minMs?: number; maxMs?: number } = {},
): number {
  const { minMs = 0, maxMs = LONGEST_MS } = limits
  const parsed =
    typeof value === 'number'
      ? value
      : typeof value === 'string' && FORM.test(value)
        ? ms(value as Duration & string)
        : NaN
  if (!Number.isFinite(parsed) || parsed < minMs || parsed > maxMs) {
    const accepted = `milliseconds as a number, or a string such as '500ms', '15s', '2m', '1h'; from ${minMs} to ${maxMs} ms`
    throw new ConfigError((what) => `${what} is ${describeValue(value)}; accepted: ${accepted}.`, {
      option,
      value,
      accepted,
    })
  }
  return Math.round(parsed)
}

/** A value as an error may show it: short, and never the inside of an object. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value)
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return typeof value === 'function' ? 'a function' : String(value)
}
