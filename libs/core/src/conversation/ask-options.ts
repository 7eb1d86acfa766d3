/** Options of a question, checked when it is asked. */
import { ConfigError } from '../contracts/errors.js'
import { parseDuration } from '../kernel/duration.js'
import type { AskOptions, Validator } from './contexts.js'

export interface ParsedAsk {
  validate: Validator | undefined
  /** Null: it waits for ever. */
  timeoutMs: number | null
  maxAttempts: number
}

/** @param presetMs timeout of a question that names none. @throws ConfigError */
export function parseAsk(options: AskOptions = {}, presetMs: number | null): ParsedAsk {
  const { timeout, maxAttempts = Infinity, validate } = options
  if (maxAttempts !== Infinity && !(Number.isSafeInteger(maxAttempts) && maxAttempts >= 1)) {
    const accepted = 'a whole number from 1'
    throw new ConfigError(`Option "maxAttempts" is ${String(maxAttempts)}; accepted: ${accepted}.`, {
      option: 'maxAttempts',
      value: maxAttempts,
      accepted,
    })
  }
  if (timeout === undefined) return { validate, timeoutMs: presetMs, maxAttempts }
  const timeoutMs = timeout === null ? null : parseDuration('timeout', timeout, { minMs: 1 })
  return { validate, timeoutMs, maxAttempts }
}
