/** Checks option objects at construction: unknown names are refused with the nearest known one suggested. */
import { closest, distance } from 'fastest-levenshtein'
import { ConfigError } from '../contracts/errors.js'
import { describeValue } from './duration.js'

/**
 * @param owner what the options belong to, such as `RedisStore`.
 * @throws ConfigError for a name that is not in `known`.
 */
export function refuseUnknownOptions(owner: string, options: object, known: readonly string[]): void {
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue
    const near = nearestName(name, known)
    throw new ConfigError(
      `${owner} has no option "${name}"${near === undefined ? '.' : `; did you mean "${near}"?`} Known: ${known.join(', ')}.`,
      { option: name, accepted: known.join(', '), owner },
    )
  }
}

/**
 * Runs the checks of one owner's options, so that what they refuse says whose option it was: an application has many.
 * @param owner what the options belong to, such as `RedisStore`.
 */
export function checkedFor<T>(owner: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof ConfigError ? error.ownedBy(owner) : error
  }
}

/** The name in `known` that `name` is most likely a slip of, if any is near enough. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  if (known.length === 0) return undefined
  const near = closest(
    name.toLowerCase(),
    known.map((one) => one.toLowerCase()),
  )
  const index = known.findIndex((one) => one.toLowerCase() === near)
  return distance(name.toLowerCase(), near) <= Math.max(2, Math.floor(name.length / 3))
    ? known[index]
    : undefined
}

/** @throws ConfigError unless `value` is one of `accepted`. */
export function requireOneOf<const T extends string>(
  option: string,
  value: unknown,
  accepted: readonly T[],
): T {
  const found = accepted.find((one) => one === value)
  if (found !== undefined) return found
  const list = accepted.map((one) => `'${one}'`).join(', ')
  throw new ConfigError((what) => `${what} is ${describeValue(value)}; accepted: ${list}.`, {
    option,
    value,
    accepted: list,
  })
}

/** @throws ConfigError unless `value` is a non-empty string. */
export function requireText(option: string, value: unknown, hint = 'a non-empty string'): string {
  if (typeof value === 'string' && value !== '') return value
  throw new ConfigError((what) => `${what} is ${describeValue(value)}; accepted: ${hint}.`, {
    option,
    accepted: hint,
  })
}
