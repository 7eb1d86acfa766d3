/**
 * A covering selection of the hand-over matrix with data in PostgreSQL, MariaDB and SQLite beside turns in a real
 * Redis, in real time: one cell of each row that says so, another one for each database (H1–H11, K1–K4, D1, D2); and a
 * replica that dies at its n-th call.
 */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe } from '@jest/globals'
import { systemClock } from '@botmesh/core'
import { PausableClock } from '@botmesh/core/testing'
import { sharedRedisUrl } from '../../support/index.js'
import { chosenCell, InRealTime, possibleRows } from './in-real-time.js'
import { inRealTimeSuite } from './in-real-time.suite.js'
import { SqlBed } from './sql-bed.js'
import { databases, placeIn, type DatabaseOf } from './sql-places.js'
import { Stalls } from './stalls.js'

const run = `h${randomUUID().slice(0, 8)}`
let beds = 0

const newBedIn = (database: DatabaseOf) => async (leaseMs: number) => {
  const [redisUrl, at] = await Promise.all([sharedRedisUrl(), placeIn(database)])
  return new SqlBed(redisUrl, at(`${run}n${beds++}`), leaseMs)
}

const stalls = new Stalls()
const inRealTime = new InRealTime(stalls)
beforeAll(async () => {
  for (const database of databases) {
    const at = await placeIn(database)
    stalls.watch(at(`${run}probe`).store(new PausableClock(systemClock)))
  }
})

/** On each database by other cells and other calls. */
const places = databases.map((database) => ({
  place: { place: database.name, newBed: newBedIn(database) },
  turn: database.turn,
}))

describe('turns in Redis, data in PostgreSQL, MariaDB and SQLite', () => {
  inRealTimeSuite(inRealTime, {
    cells: places.flatMap(({ place, turn }) =>
      possibleRows.map((row, index) => ({ ...place, row, cell: chosenCell(row, index, turn) })),
    ),
    crashes: places.flatMap(({ place, turn }) =>
      Array.from({ length: 8 }, (_, n) => ({ ...place, call: 3 * n + turn })),
    ),
    leastCrashed: 16,
  })
})
