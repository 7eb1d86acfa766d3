/**
 * The table of outcomes (docs/handover-matrix.json): what it consists of, how its rows stand for cells, and that every
 * cell has exactly one row.
 */
import { readFileSync } from 'node:fs'

export type ConversationKind =
  | 'persistent'
  | 'plain'
  | 'async'
  | 'plain-unforwardable'
  | 'plain-changed'
  | 'persistent-extended'
  | 'persistent-renamed'
  | 'persistent-removed'
export type Accident = 'killed' | 'stopped' | 'frozen' | 'cut'
export type Moment =
  | 'before-question'
  | 'first-question'
  | 'first-answer'
  | 'later-question'
  | 'later-answer'
  | 'inside-do'
  | 'timer-pending'
  | 'form'
export type Handover = 'off' | 'forward' | 'notify' | 'restart' | 'drop' | 'function'
export type Durability = 'off' | 'on'

export interface Cell {
  conversation: ConversationKind
  moment: Moment
  accident: Accident
  handover: Handover
  durability: Durability
}

type Area = { [Dimension in keyof Cell]: Cell[Dimension][] }

export type Row = Area & {
  /** What the outcome follows from: requirement ids. */
  cites: string[]
  /** Runs on Redis too. */
  redis?: boolean
} & ({ impossible: string } | Outcome)

export interface Outcome {
  /** Said before the accident. */
  before: string[]
  /** What the store holds right after it. */
  store: 'checkpoint' | 'marker' | 'none'
  /** Said after it, while the user writes `then`. */
  after: string[]
  /** `outcome` or `outcome (reason)` of each hand-over that is reported, in order, once. */
  events: string[]
}

export interface Matrix {
  about: string
  /** Which cells there are: every combination of each of these areas. */
  areas: Area[]
  rows: Row[]
}

export const MATRIX_FILE = new URL('../../../docs/handover-matrix.json', import.meta.url)

export function readMatrix(): Matrix {
  return JSON.parse(readFileSync(MATRIX_FILE, 'utf8')) as Matrix
}

export const DIMENSIONS = ['conversation', 'moment', 'accident', 'handover', 'durability'] as const

/** Every combination of an area's values. */
export function cellsOf(area: Area): Cell[] {
  let cells: Partial<Cell>[] = [{}]
  for (const dimension of DIMENSIONS) {
    const values: readonly string[] = area[dimension]
    cells = cells.flatMap((cell) => values.map((value) => ({ ...cell, [dimension]: value })))
  }
  return cells as Cell[]
}

export function nameOf(cell: Cell): string {
  return DIMENSIONS.map((dimension) => cell[dimension]).join(' / ')
}

/** Cells without a row, with several, and rows for cells that there are not; empty if all is well. */
export function gaps(matrix: Matrix): string[] {
  const count = new Map(matrix.areas.flatMap(cellsOf).map((cell) => [nameOf(cell), 0]))
  const found: string[] = []
  for (const cell of matrix.rows.flatMap(cellsOf)) {
    const name = nameOf(cell)
    const before = count.get(name)
    if (before === undefined) found.push(`no such cell: ${name}`)
    else count.set(name, before + 1)
  }
  for (const [name, rows] of count) if (rows !== 1) found.push(`${rows} rows: ${name}`)
  return found
}
