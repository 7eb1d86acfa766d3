/** Compares quick readers with the schemas that they are derived from, on what samples and damaged samples hold. */
import { isDeepStrictEqual } from 'node:util'
import type { QuickReader } from '@botmesh/core'
import type { z } from 'zod'
import { damageBody, type Chance } from './damage-body.js'

type Readers = Readonly<Record<string, QuickReader<z.ZodType>>>

/** How often a reader gave a value back as it came, took it by way of zod, refused it. */
export interface ReadCounts {
  quick: number
  byZod: number
  refused: number
}

/**
 * Reads every part of each sample, and of damaged ones, by each reader.
 * @throws Error with the part if reader and schema do not agree.
 */
export function compareReads(
  readers: Readers,
  samples: readonly string[],
  rounds: number,
  chance: Chance,
): Record<string, ReadCounts> {
  const counts = Object.fromEntries(
    Object.keys(readers).map((name) => [name, { quick: 0, byZod: 0, refused: 0 }]),
  )
  const compareAll = (text: string) => {
    for (const part of partsOf(parsed(text))) {
      for (const [name, read] of Object.entries(readers)) counts[name]![compare(name, read, part)] += 1
    }
  }
  samples.forEach(compareAll)
  for (let round = 0; round < rounds; round += 1) compareAll(damageBody(chance.pick(samples), chance))
  return counts
}

function compare(name: string, read: QuickReader<z.ZodType>, part: unknown): keyof ReadCounts {
  const given = read(part)
  const asked = read.schema.safeParse(part)
  if (given === undefined ? asked.success : !asked.success || !holds(given, asked.data)) {
    throw new Error(`${name} does not read as its schema does: ${JSON.stringify(part)}`)
  }
  if (given === undefined) return 'refused'
  return given === part ? 'quick' : 'byZod'
}

/** True if `given` is `asked`, but for fields that are not asked for. */
function holds(given: unknown, asked: unknown): boolean {
  if (typeof asked !== 'object' || asked === null) return isDeepStrictEqual(given, asked)
  if (typeof given !== 'object' || given === null) return false
  if (Array.isArray(asked) && (!Array.isArray(given) || given.length !== asked.length)) return false
  const fields = given as Record<string, unknown>
  return Object.entries(asked).every(([field, value]) => holds(fields[field], value))
}

/** The value and all that is in it. */
function partsOf(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return [value]
  return [value, ...Object.values(value).flatMap(partsOf)]
}

/** What is no JSON any more counts as a text: readers must refuse that, too. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
