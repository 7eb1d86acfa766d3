/**
 * A covering selection of the hand-over matrix on a real Redis, in real time: one cell of each row that says so, all at
 * once, each under a prefix of its own (H1–H11, K1–K4, T3–T5, D1, D2).
 */
import { describe, expect, it } from '@jest/globals'
import { sharedRedisUrl } from '../../support/index.js'
import { cellsOf, nameOf, readMatrix, type Cell, type Outcome, type Row } from './matrix.js'
import { RedisBed } from './redis-bed.js'
import { runCell } from './run-cell.js'

type PossibleRow = Row & Outcome

const rows = readMatrix().rows.filter(
  (row): row is PossibleRow => row.redis === true && !('impossible' in row),
)

/** Not always the first one: accidents, settings and durability all get their turn. */
function chosen(row: PossibleRow, index: number): Cell {
  const cells = cellsOf(row)
  return cells[(index * 7) % cells.length] as Cell
}

describe('H1–H11, K1–K4, T3–T5, D1, D2: hand-over on Redis', () => {
  it('has every accident and both kinds of durability among its cells', () => {
    const cells = rows.map(chosen)
    expect(new Set(cells.map(({ accident }) => accident)).size).toBe(4)
    expect(new Set(cells.map(({ durability }) => durability)).size).toBe(2)
    expect(new Set(cells.map(({ handover }) => handover)).size).toBeGreaterThan(3)
  })

  it('comes out as the matrix says', async () => {
    const url = await sharedRedisUrl()
    const run = `matrix-${process.pid}`
    const played = rows.map(async (row, index) => {
      const cell = chosen(row, index)
      const bed = new RedisBed(url, `${run}-${index}`)
      try {
        const seen = await runCell(bed, cell)
        const { before, store, after, events } = row
        return { cell: nameOf(cell), seen, expected: { before, store, after, events, errors: [] } }
      } finally {
        await bed.close()
      }
    })
    for (const { cell, seen, expected } of await Promise.all(played)) {
      expect({ cell, ...seen }).toEqual({ cell, ...expected })
    }
  }, 90_000)
})
