/**
 * What a run found, printed as it comes and kept for the report. A file of results holds one entry for each benchmark,
 * with the conditions it was measured under: a run replaces the entries of the benchmarks that it measured, and leaves
 * the others as they are.
 */
import { existsSync } from 'node:fs'
import { readFile, rename, writeFile } from 'node:fs/promises'

export const FORMAT = 1
/** Instead of a value, where one of the two that are compared failed in every round. */
export const NOT_MEASURED = 'not measured'

/**
 * @typedef {{ value: number, low: number, high: number }} Spread median, least and most of the rounds
 * @typedef {{ label: string, contender: string, ours: boolean, excludes: boolean, rate: Spread, redisUs: number, clientUs: number, scriptCalls: number, overlaps: number, disorders: number }} Rate
 * @typedef {{ title: string, rows: Rate[] }} RateGroup
 * @typedef {{ label: string, value: number, low?: number, high?: number, ours?: boolean }} Figure
 * @typedef {{ title: string, unit: string, rows: Figure[] }} FigureGroup
 * @typedef {{ name: string, value?: number, relation?: '>=' | '<=', limit?: number, unit?: string, holds?: boolean }} Verdict
 * @typedef {{ title: string, label: string, contender: string, ours: boolean, round: number, rounds: number, error: string }} Failure rounds from 1
 * @typedef {{ letter: string, title: string, conditions: Record<string, unknown>, groups: RateGroup[], figures: FigureGroup[], verdicts: Verdict[], failures?: Failure[] }} Entry none has no value
 * @typedef {{ format: number, benchmarks: Record<string, Entry> }} Results
 */

export class Record {
  /** @type {Entry} */
  entry

  constructor(letter, title) {
    this.entry = { letter, title, conditions: {}, groups: [], figures: [], verdicts: [], failures: [] }
    console.log(`(${letter}) ${title}`)
  }

  /** Rates of several contenders, measured in turns. */
  rates(title, rows) {
    if (rows.length === 0) return
    this.entry.groups.push({ title, rows })
    console.log(`  ${title}`)
    for (const { label, rate, redisUs, clientUs, scriptCalls, overlaps, disorders } of rows) {
      const odd = overlaps + disorders > 0 ? `; ${overlaps} overlap, ${disorders} out of order` : ''
      console.log(
        `  ${label.padEnd(18)} ${rate.value.toFixed(0).padStart(7)} turns/s  Redis ${redisUs.toFixed(1)} µs, clients ${clientUs.toFixed(1)} µs, script calls ${scriptCalls.toFixed(3)} a turn${odd}`,
      )
    }
  }

  /** Figures of one unit that belong beside each other. */
  figures(title, unit, rows) {
    this.entry.figures.push({ title, unit, rows })
    console.log(`  ${title}`)
    for (const { label, value } of rows) console.log(`  ${label.padEnd(40)} ${value.toFixed(2)} ${unit}`)
  }

  /** A contender's process failed in a round. @param {Failure} failure */
  failure(failure) {
    this.entry.failures.push(failure)
    console.error(`  FAIL ${failure.label} in round ${failure.round}: ${failure.error}`)
  }

  /** Notes a requirement: `value` has to be `relation` `limit`, and one that could not be measured is missed. */
  require(name, value, relation, limit, unit = '') {
    const holds = value !== undefined && (relation === '>=' ? value >= limit : value <= limit)
    this.entry.verdicts.push({ name, value, relation, limit, unit, holds })
    console.log(
      `  ${holds ? 'ok  ' : 'MISS'} ${name}: ${value?.toFixed(2) ?? NOT_MEASURED}${unit} (${relation} ${Number(limit.toFixed(2))}${unit})`,
    )
  }

  /** Notes what was seen where no limit was set. */
  note(name, value) {
    this.entry.verdicts.push({ name, value })
    console.log(`  seen ${name}: ${value?.toFixed(2) ?? NOT_MEASURED}`)
  }
}

/**
 * How a run ends: what was missed or failed makes it fail, but for the processes of others.
 *
 * @param {Entry[]} entries @param {string[]} broken letters without results
 */
export function conclude(entries, broken) {
  const verdicts = entries.flatMap((entry) => entry.verdicts.filter(({ holds }) => holds !== undefined))
  const missed = verdicts.filter(({ holds }) => !holds)
  const failures = entries.flatMap(({ letter, failures: all }) => all.map((one) => ({ ...one, letter })))
  return {
    lines: [
      ...(broken.length > 0 ? [`Without results: ${broken.join(', ')}; see above.`] : []),
      ...failures.map((one) => `(${one.letter}) ${one.label} failed in round ${one.round}; see above.`),
      missed.length > 0
        ? `${missed.length} of ${verdicts.length} requirements missed.`
        : 'All requirements that were measured hold.',
    ],
    exitCode: missed.length + broken.length + failures.filter(({ ours }) => ours).length === 0 ? 0 : 1,
  }
}

/** @returns {Promise<Results>} */
export async function readResults(file) {
  if (!existsSync(file)) return { format: FORMAT, benchmarks: {} }
  const results = JSON.parse(await readFile(file, 'utf8'))
  if (results.format !== FORMAT || typeof results.benchmarks !== 'object') {
    throw new Error(`${file} holds no results of this format (${FORMAT}): name another file, or remove it`)
  }
  return results
}

/** Under which a benchmark's entry is kept. */
export const keyOf = (letter, anywhere) => (anywhere ? `${letter} anywhere` : letter)

/** Puts one benchmark's entry into the file; those of other benchmarks stay. Never leaves half a file. */
export async function keep(file, entry) {
  const results = await readResults(file)
  const key = keyOf(entry.letter, entry.conditions.anywhere)
  const benchmarks = Object.entries({ ...results.benchmarks, [key]: entry })
  benchmarks.sort(([a], [b]) => (a < b ? -1 : 1))
  await writeFile(
    `${file}.part`,
    `${JSON.stringify({ format: FORMAT, benchmarks: Object.fromEntries(benchmarks) }, null, 2)}\n`,
  )
  await rename(`${file}.part`, file)
}
