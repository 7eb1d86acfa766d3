/**
 * A covering selection of the hand-over matrix with data in PostgreSQL, MariaDB and SQLite beside turns in a real
 * Redis, in real time: one cell of each row that says so, another one for each database (H1–H11, K1–K4, D1, D2); and a
 * replica that dies at its n-th call.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { systemClock } from '@botmesh/core'
import { PausableClock } from '@botmesh/core/testing'
import { sharedRedisUrl } from '../../support/index.js'
import { isWrong, type FaultCase } from './fault-points.js'
import { MINUTES, playCall, playRow, possibleRows, type PossibleRow } from './in-real-time.js'
import { cellsOf, nameOf, type Cell } from './matrix.js'
import { SqlBed } from './sql-bed.js'
import { databases, placeIn, type DatabaseOf } from './sql-places.js'
import { Stalls } from './stalls.js'

/** They do not all make their tables at one moment, nor are all of them busy at once: there are three times as many as rows. */
const APART_MS = 100

const run = `h${randomUUID().slice(0, 8)}`
let beds = 0

/** Somewhere nobody has been. */
const newBedIn = (database: DatabaseOf) => async (leaseMs: number) => {
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
  possibleRows.map((row, index) => ({ database, row, cell: chosen(row, index, database.turn) })),
)

describe('turns in Redis, data in PostgreSQL, MariaDB and SQLite', () => {
  it(
    'H1–H11, K1–K4, T3–T5, D1, D2: hand-over comes out as the matrix says',
    async () => {
      const played = cells.map(async ({ database, row, cell }, index) => {
        await delay(index * APART_MS)
        const { seen, expected } = await playRow(stalls, newBedIn(database), cell, row)
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
        const outcome = await playCall(stalls, newBedIn(database), fault, call)
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
