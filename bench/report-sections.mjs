/** What the report says of one benchmark: its conditions, a chart and a table for each group, and the requirements. */
import { readable } from './chart.mjs'
import { CONTENDERS } from './contenders.mjs'
import { keyOf, NOT_MEASURED } from './record.mjs'
import { TOPICS } from './topics.mjs'

const fileOf = (key, kind, n) => `${key.replace(' ', '-')}-${kind}${n}.svg`
/** Disturbed less than rates by what else runs on the machine. */
const CPU = 'µs of processor time a turn, Redis and clients together'
const NOT_QUIET =
  '**Not quiet**: more was to be done than there are processors. Rates, latencies and their ratios are not to be quoted.'
const row = (cells) => `| ${cells.join(' | ')} |`
const table = (head, rows) => [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n')
/** Two digits after the point are too few for ratios of a hundredth. */
const exact = (value) => (Math.abs(value) < 0.1 && value !== 0 ? value.toPrecision(2) : readable(value))

/** @returns {Array<[string, object]>} name and content of each chart */
export function chartsOf(key, { letter, title, groups, figures }) {
  const short = `(${letter}) ${title.split(':', 1)[0]}`
  return [
    ...groups.map((group, n) => [
      fileOf(key, 'rates', n + 1),
      {
        ...{ title: short, subtitle: group.title, unit: 'turns a second' },
        rows: group.rows.map(({ label, rate, ours, excludes }) => ({
          ...{ label, ...rate, kind: ours ? 'ours' : excludes ? 'other' : 'loose' },
        })),
      },
    ]),
    ...groups.map((group, n) => [
      fileOf(key, 'cost', n + 1),
      {
        ...{ title: short, subtitle: group.title, unit: CPU },
        rows: group.rows.map(({ label, redisUs, clientUs, ours, excludes }) => ({
          ...{ label, value: redisUs + clientUs, kind: ours ? 'ours' : excludes ? 'other' : 'loose' },
        })),
      },
    ]),
    ...figures.map(({ title: one, unit, rows }, n) => [
      fileOf(key, 'figures', n + 1),
      {
        ...{ title: short, subtitle: one },
        unit,
        rows: rows.map((each) => ({ ...each, kind: each.ours ? 'ours' : 'other' })),
      },
    ]),
  ]
}

const ANYWHERE = ', processes anywhere'
const MISSING = 'Not among these results: '

/** Says that there are no figures, and how to get them. */
export const missing = (letter) =>
  `### (${letter}) ${TOPICS[letter]}\n\n${MISSING}\`node bench/run.mjs --only ${letter} --json bench/results/latest.json --report\`.`

/** @returns {Array<[string, string]>} the sections with figures that a report has, by the keys of their benchmarks */
export const sectionsOf = (report) =>
  report.split(/^(?=### )/m).flatMap((text) => {
    const [heading, letter] = /^### \((\w)\) .*/.exec(text) ?? []
    if (letter === undefined || text.includes(MISSING)) return []
    return [[keyOf(letter, heading.endsWith(ANYWHERE)), text.trim()]]
  })

export function section(key, entry) {
  const { letter, title, conditions, groups, figures, verdicts, failures = [] } = entry
  const { anywhere, at, command, model, processors, node, redis, loads, placed } = conditions
  const [from, to] = loads.map((load) => load.toFixed(1))
  return [
    `### (${letter}) ${title}${anywhere ? ANYWHERE : ''}`,
    `\`${command}\`, ${at.slice(0, 10)}: ${processors} × ${model}, Node ${node}, Redis ${redis}; load ${from} before and ${to} after; processes: ${placed}.`,
    ...(Math.max(...loads) > processors ? [NOT_QUIET] : []),
    ...groups.map((group, n) => rateTable(key, group, n)),
    ...whoIsWho(groups),
    ...whoFailed(failures),
    ...figures.map(({ title: one, unit, rows }, n) =>
      [`![${one}, in ${unit}](charts/${fileOf(key, 'figures', n + 1)})`, figureTable(one, unit, rows)].join(
        '\n\n',
      ),
    ),
    ...(verdicts.length > 0 ? [verdictTable(verdicts)] : []),
  ].join('\n\n')
}

function rateTable(key, { title, rows }, n) {
  return [
    `![${title}, turns a second](charts/${fileOf(key, 'rates', n + 1)})`,
    `![${title}, ${CPU}](charts/${fileOf(key, 'cost', n + 1)})`,
    table(
      [
        title,
        'turns/s',
        'least – most',
        'Redis µs',
        'clients µs',
        'script calls',
        'overlaps',
        'out of order',
      ],
      rows.map((one) => [
        one.excludes ? one.label : `${one.label} (does not exclude)`,
        ...[readable(one.rate.value), between(one.rate.low, one.rate.high)],
        ...[one.redisUs.toFixed(1), one.clientUs.toFixed(1), one.scriptCalls.toFixed(3)],
        ...[one.overlaps, one.disorders],
      ]),
    ),
  ].join('\n\n')
}

/** What should be known of those who took part, each said once. */
function whoIsWho(groups) {
  const names = new Set(groups.flatMap(({ rows }) => rows.map(({ contender }) => contender)))
  const known = [...names].filter((name) => CONTENDERS[name]?.about)
  return known.length > 0 ? [known.map((name) => `- ${name}: ${CONTENDERS[name].about}.`).join('\n')] : []
}

/** Who has fewer rounds than the others, or none, and why; the whole error is among the results. */
function whoFailed(failures) {
  const line = ({ title, label, round, rounds, error }) =>
    `- **${label} failed in round ${round} of ${rounds}** (${title}): \`${error.split('\n', 1)[0].replaceAll('`', "'")}\``
  return failures.length > 0 ? [failures.map(line).join('\n')] : []
}

/** Several rounds have a least and a most, a single look has none. */
function figureTable(title, unit, rows) {
  const spreads = rows.some(({ low }) => low !== undefined)
  return table(
    [title, unit, ...(spreads ? ['least – most'] : [])],
    rows.map(({ label, value, low, high }) => [
      ...[label, readable(value), ...(spreads ? [between(low, high)] : [])],
    ]),
  )
}

const between = (low, high) => (low === undefined ? '' : `${readable(low)} – ${readable(high)}`)

function verdictTable(verdicts) {
  return table(
    ['', 'required', 'seen', ''],
    verdicts.map(({ name, value, relation, limit, unit = '', holds }) => [
      ...[name, relation === undefined ? '' : `${relation === '>=' ? '≥' : '≤'} ${exact(limit)}${unit}`],
      ...[
        value === undefined ? NOT_MEASURED : `${exact(value)}${unit}`,
        holds === undefined ? '' : holds ? 'holds' : 'missed',
      ],
    ]),
  )
}
