/** The hand-over matrix as Markdown: what docs/handover-matrix.md holds between its marks. */
import type { Matrix, Row } from './matrix.js'

export const BEGIN = '<!-- rows: begin -->'
export const END = '<!-- rows: end -->'

export function renderMatrix({ rows }: Matrix): string {
  const possible = rows.filter((row) => !('impossible' in row))
  const kinds = [...new Set(possible.flatMap(({ conversation }) => conversation))]
  const tables = kinds.map((kind) =>
    tableOf(
      kind,
      possible.filter((row) => row.conversation.includes(kind)),
    ),
  )
  const impossible = rows.flatMap((row) =>
    'impossible' in row
      ? [
          `| ${joined(row.conversation)} | ${joined(row.moment)} | ${joined(row.accident)} | ${row.impossible} |`,
        ]
      : [],
  )
  const none = ['### Impossible', '', head('conversation', 'moment', 'accident', 'why'), ...impossible].join(
    '\n',
  )
  return [...tables, none].join('\n\n')
}

/** @returns the document with its rows replaced. @throws Error if it has no place for them. */
export function withRows(document: string, rows: string): string {
  const from = document.indexOf(BEGIN)
  const to = document.indexOf(END)
  if (from < 0 || to < from) throw new Error(`The document lacks "${BEGIN}" or "${END}".`)
  return `${document.slice(0, from)}${BEGIN}\n\n${rows}\n\n${document.slice(to)}`
}

function tableOf(kind: string, rows: readonly Row[]): string {
  const columns = head(
    'moment',
    'accident',
    'handover',
    'durability',
    'before',
    'store',
    'after',
    'event',
    'follows from',
  )
  return [`### ${kind}`, '', columns, ...rows.map(lineOf)].join('\n')
}

function lineOf(row: Row): string {
  if ('impossible' in row) return ''
  const cells = [
    joined(row.moment),
    joined(row.accident),
    row.handover.length === 6 ? 'any' : joined(row.handover),
    row.durability.length === 2 ? 'any' : joined(row.durability),
    said(row.before),
    row.store,
    said(row.after),
    row.events.length === 0 ? '–' : joined(row.events),
    row.cites.join(', ') + (row.redis === true ? ' ®' : ''),
  ]
  return `| ${cells.join(' | ')} |`
}

function head(...columns: string[]): string {
  return `| ${columns.join(' | ')} |\n|${' --- |'.repeat(columns.length)}`
}

function joined(values: readonly string[]): string {
  return values.join(', ')
}

function said(texts: readonly string[]): string {
  return texts.length === 0 ? '–' : texts.join(' · ')
}
