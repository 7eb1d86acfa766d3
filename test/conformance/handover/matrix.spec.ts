/**
 * The hand-over matrix on the in-process hub: every cell of docs/handover-matrix.json, with turns and data in one
 * backend and apart. H1–H11, K1–K4, T3–T5, D1 and D2 in all their combinations; scenarios 5, 29 and 31.
 */
import { describe, expect, it } from '@jest/globals'
import { MemoryBed, type Placement } from './memory-bed.js'
import { cellsOf, gaps, nameOf, readMatrix, type Cell, type Outcome } from './matrix.js'
import { runCell } from './run-cell.js'

const matrix = readMatrix()
const possible = matrix.rows.flatMap((row) => ('impossible' in row ? [] : [row]))

describe('the hand-over matrix', () => {
  it('has exactly one row for every cell', () => {
    expect(gaps(matrix)).toEqual([])
  })

  it('says of each impossible cell why', () => {
    const reasons = matrix.rows.flatMap((row) => ('impossible' in row ? [row.impossible] : []))
    expect(reasons.filter((reason) => reason.length < 30)).toEqual([])
  })
})

for (const placement of ['shared', 'separate'] as const) {
  describe(`H1–H11, K1–K4, T3–T5, D1, D2: hand-over, turns and data ${placement}`, () => {
    it.each(possible.map((row) => [titleOf(row), row] as const))('%s', async (_title, row) => {
      const wrong: unknown[] = []
      for (const cell of cellsOf(row)) {
        const seen = await played(placement, cell)
        const { before, store, after, events } = row
        if (!same(seen, { before, store, after, events, errors: [] }))
          wrong.push({ cell: nameOf(cell), ...seen })
      }
      const { before, store, after, events } = row
      expect({ wrong, as: { before, store, after, events } }).toEqual({
        wrong: [],
        as: { before, store, after, events },
      })
    })
  })
}

async function played(placement: Placement, cell: Cell) {
  const bed = new MemoryBed(placement)
  try {
    return await runCell(bed, cell)
  } finally {
    await bed.close()
  }
}

function same(a: object, b: object): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

function titleOf(row: Outcome & Record<keyof Cell, string[]> & { cites: string[] }): string {
  const { cites, conversation, moment, accident, handover, durability } = row
  return `${cites.join(', ')}: ${conversation.join('|')} ${moment.join('|')}, ${accident.join('|')}, handover ${handover.join('|')}, durability ${durability.join('|')}`
}
