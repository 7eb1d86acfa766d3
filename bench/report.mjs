/**
 * Writes the report: a chart for each group of figures, and tables that stand between two marks of a document.
 *
 *   node bench/report.mjs results.json [--out folder]
 *
 * Without `--out` the tables go into BENCHMARKS.md and the charts into charts/, both beside this file; with it into
 * report.md and charts/ of that folder. What the document tells of benchmarks that the file does not have stays there.
 */
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { format, resolveConfig } from 'prettier'
import { barChart } from './chart.mjs'
import { keyOf, readResults } from './record.mjs'
import { chartsOf, missing, section, sectionsOf } from './report-sections.mjs'
import { TOPICS } from './topics.mjs'

const HERE = dirname(fileURLToPath(import.meta.url))
const BEGIN = '<!-- report: begin -->'
const END = '<!-- report: end -->'

/** @param {string} file of results @param {string} [folder] where to, if not into BENCHMARKS.md */
export async function writeReport(file, folder = HERE) {
  const { benchmarks } = await readResults(file)
  const entries = Object.entries(benchmarks)
  if (entries.length === 0) throw new Error(`${file} holds no results: run bench/run.mjs with --json first`)
  const document = join(folder, folder === HERE ? 'BENCHMARKS.md' : 'report.md')
  const text = existsSync(document) ? await readFile(document, 'utf8') : `# Benchmarks\n\n${BEGIN}\n${END}\n`
  const [before, rest] = text.split(BEGIN)
  const [old, after] = rest?.split(END) ?? []
  if (after === undefined) throw new Error(`${document} needs a line ${BEGIN} and, after it, one ${END}`)
  // What this file does not have was measured, too: it stays as it was told, with its date and command.
  const sections = new Map([...sectionsOf(old), ...entries.map(([key, entry]) => [key, section(key, entry)])])
  const tables = Object.keys(TOPICS)
    .flatMap((letter) => {
      const found = [keyOf(letter, false), keyOf(letter, true)].filter((key) => sections.has(key))
      return found.length > 0 ? found.map((key) => sections.get(key)) : [missing(letter)]
    })
    .join('\n\n')

  const charts = join(folder, 'charts')
  await mkdir(charts, { recursive: true })
  const drawn = new Map(entries.flatMap(([key, entry]) => chartsOf(key, entry)))
  for (const name of await readdir(charts))
    if (name.endsWith('.svg') && !tables.includes(`(charts/${name})`)) await rm(join(charts, name))
  for (const [name, chart] of drawn) await writeFile(join(charts, name), barChart(chart))
  const whole = `${before}${BEGIN}\n\n${tables}\n\n${END}${after}`
  await writeFile(
    document,
    await format(whole, { ...(await resolveConfig(fileURLToPath(import.meta.url))), parser: 'markdown' }),
  )
  console.log(`${basename(document)} and ${drawn.size} charts are written, of ${entries.length} benchmarks.`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { out: { type: 'string' } },
  })
  if (positionals.length !== 1) throw new Error('usage: node bench/report.mjs results.json [--out folder]')
  await writeReport(positionals[0], values.out)
}
