/**
 * A covering selection of the hand-over matrix with data in PostgreSQL, MariaDB and SQLite beside turns in a real
 * Redis, in real time: one cell of each row that says so, another one for each database (H1–H11, K1–K4, D1, D2); and a
 * replica that dies at its n-th call.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { PausableClock } from '@botmesh/core/testing'
import { systemClock } from '@botmesh/core'
import { sharedRedisUrl } from '../../support/index.js'
import { cellsOf, nameOf, readMatrix, type Cell, type Outcome, type Row } from './matrix.js'
import { isWrong, playFault, type FaultCase } from './fault-points.js'
import { runCell, type Observed } from './run-cell.js'
import { SqlBed } from './sql-bed.js'
import { databases, placeIn, type DatabaseOf } from './sql-places.js'
import { Stalls } from './stalls.js'

type PossibleRow = Row & Outcome

const rows = readMatrix().rows.filter(
  (row): row is PossibleRow => row.redis === true && !('impossible' in row),
)

/** They do not all make their tables at one moment, nor are all of them busy at once: there are three times as many as rows. */
const APART_MS = 100
/** None but the one that a cell freezes may stand still for so long, also where much else is done on the machine. */
const CELL_LEASE_MS = 3_000
const FAULT_LEASE_MS = 1_000
/** One time takes less than one. */
const MINUTES = 240_000

const run = `h${randomUUID().slice(0, 8)}`
let beds = 0

/** Somewhere nobody has been. */
async function bedIn(database: DatabaseOf, leaseMs?: number): Promise<SqlBed> {
  const [redisUrl, at] = await Promise.all([sharedRedisUrl(), placeIn(database)])
  return new SqlBed(redisUrl, at(`${run}n${beds++}`), leaseMs)
}

const stalls = new Stalls()
beforeAll(async () => {
  for (const database of databases) {
    const at = await placeIn(database)
    stalls.watch(at(`${run}probe`).store(new PausableClock(systemClock)))
  }
})

/** Not always the first one: accidents, settings and durability all get their turn. */
function chosen(row: PossibleRow, index: number, turn: number): Cell {
  const cells = cellsOf(row)
  return cells[(index * 7 + turn) % cells.length] as Cell
}

/** Each row on each of them, by another cell. */
const cells = databases.flatMap((database) =>
  rows.map((row, index) => ({ database, row, cell: chosen(row, index, database.turn) })),
)

describe('turns in Redis, data in PostgreSQL, MariaDB and SQLite', () => {
  it(
    'H1–H11, K1–K4, T3–T5, D1, D2: hand-over comes out as the matrix says',
    async () => {
      const played = cells.map(async ({ database, row, cell }, index) => {
        await delay(index * APART_MS)
        const { before, store, after, events } = row
        const expected = { before, store, after, events, errors: [] }
        const once = async () => {
          const bed = await bedIn(database, CELL_LEASE_MS)
          try {
            return await runCell(bed, cell)
          } finally {
            await bed.close()
          }
        }
        const isRight = (seen: Observed) => isDeepStrictEqual(seen, expected)
        const seen = await stalls.play(once, isRight, CELL_LEASE_MS / 3)
        return { name: `${database.name}: ${nameOf(cell)}`, seen, expected }
      })
      const all = await Promise.all(played)
      expect(all.map(({ name, seen }) => ({ name, ...seen }))).toEqual(
        all.map(({ name, expected }) => ({ name, ...expected })),
      )
    },
    MINUTES,
  )

  it(
    'scenario 5, D1, D2, H8: a crash at the n-th call loses nothing, does nothing twice, and the other replica completes it',
    async () => {
      const fault: FaultCase = { subject: 'flow', fault: 'crash', durable: true }
      // Every third call, others for each database.
      const points = databases.flatMap((database) =>
        Array.from({ length: 8 }, (_, n) => ({ database, call: 3 * n + database.turn })),
      )
      const played = points.map(async ({ database, call }, index) => {
        await delay(index * APART_MS)
        const once = async () => {
          const bed = await bedIn(database, FAULT_LEASE_MS)
          try {
            return await playFault(bed, fault, call)
          } finally {
            await bed.close()
          }
        }
        const outcome = await stalls.play(once, (seen) => !isWrong(fault, seen), FAULT_LEASE_MS / 3)
        return { name: database.name, call, outcome }
      })
      const all = await Promise.all(played)
      const wrong = all.filter(({ outcome }) => isWrong(fault, outcome))
      expect(wrong.map((one) => JSON.stringify(one))).toEqual([])
      expect(all.filter(({ outcome }) => outcome.call !== undefined).length).toBeGreaterThan(15)
    },
    MINUTES,
  )
})
