/**
 * A covering selection of the hand-over matrix on a real Redis, in real time: one cell of each row that says so, all at
 * once, each under a prefix of its own (H1–H11, K1–K4, T3–T5, D1, D2); and a replica that dies at its n-th call.
 */
import { describe, expect, it } from '@jest/globals'
import { sharedRedisUrl } from '../../support/index.js'
import { cellsOf, nameOf, readMatrix, type Cell, type Outcome, type Row } from './matrix.js'
import { isWrong, playFault, type FaultCase } from './fault-points.js'
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
    const all = await Promise.all(played)
    // With the cell, so that all that differ are seen at once.
    expect(all.map(({ cell, seen }) => ({ cell, ...seen }))).toEqual(
      all.map(({ cell, expected }) => ({ cell, ...expected })),
    )
  }, 90_000)
})

/** More calls than the messages of a flow take; of the others every third is tried. */
const MOST_CALLS = 30

describe('D1, D2, H8, scenario 5: a crash at the n-th call, on Redis', () => {
  it('loses nothing, does nothing twice, and is completed by the other replica', async () => {
    const url = await sharedRedisUrl()
    const given = (subject: FaultCase['subject']): FaultCase => ({ subject, fault: 'crash', durable: true })
    const every = Array.from({ length: MOST_CALLS }, (_, index) => [given('flow'), index + 1] as const)
    const third = every.filter((_, index) => index % 3 === 0).map(([, at]) => at)
    const others = (['conversation', 'handler'] as const).flatMap((subject) =>
      third.map((at) => [given(subject), at] as const),
    )
    const played = [...every, ...others].map(async ([fault, at]) => {
      const bed = new RedisBed(url, `crash-${process.pid}-${fault.subject}-${at}`, 1_000)
      try {
        return { fault, at, outcome: await playFault(bed, fault, at) }
      } finally {
        await bed.close()
      }
    })
    const all = await Promise.all(played)
    expect(
      all.filter(({ fault, outcome }) => isWrong(fault, outcome)).map((one) => JSON.stringify(one)),
    ).toEqual([])
    const reached = all.filter(({ fault, outcome }) => fault.subject === 'flow' && outcome.call !== undefined)
    expect(reached.length).toBeGreaterThan(10)
    expect(reached.length).toBeLessThan(MOST_CALLS)
  }, 90_000)
})
