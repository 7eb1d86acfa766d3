/**
 * What application code throws, made fit to be told: JavaScript lets it throw anything, also what fails when it is
 * looked at. Told wrongly it would fail again while its failure is noted, and its chat would never go on (D3).
 */
import { ConfigError } from '../contracts/errors.js'

/** Longest text that is kept of an error. */
const LONGEST_TEXT = 2_000

/**
 * @returns `error`, or, if it can neither be compared nor read (an object without prototype, a getter or a proxy that
 * throws), an error that says so and has it as cause.
 */
export function tellable(error: unknown): unknown {
  try {
    read(error)
    return error
  } catch {
    return new ConfigError(
      `Something was thrown that cannot be told as text (${typeof error}): throw an Error.`,
      { option: 'throw', accepted: 'an Error' },
      error,
    )
  }
}

/** An error in one text, at most 2,000 characters: it is kept with a record, and read with every record. Never throws. */
export function textOfError(error: unknown): string {
  const text = read(tellable(error))
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text
}

function read(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}
