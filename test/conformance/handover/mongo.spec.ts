/**
 * A covering selection of the hand-over matrix with data in MongoDB (where `MONGO_URL` is given; else on the double of a
 * server) beside turns in a real Redis, in real time: one cell of each row that says so (H1–H11, K1–K4, D1, D2); and a
 * replica that dies at its n-th call.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { sharedRedisUrl } from '../../support/index.js'
import { isWrong, type FaultCase } from './fault-points.js'
import { CELL_LEASE_MS, MINUTES, playCall, playRow, possibleRows, type PossibleRow } from './in-real-time.js'
import { cellsOf, nameOf, type Cell } from './matrix.js'
import { MongoBed } from './mongo-bed.js'
import { mongoPlace } from './mongo-places.js'
import { Stalls } from './stalls.js'

/** Replicas do not all connect at one moment. */
const APART_MS = 60

const run = `h${randomUUID().slice(0, 8)}`
let beds = 0

/** Somewhere nobody has been. */
async function newBed(leaseMs: number): Promise<MongoBed> {
  const [redisUrl, place] = await Promise.all([sharedRedisUrl(), mongoPlace(`${run}n${beds++}`)])
  return new MongoBed(redisUrl, place, leaseMs)
}

const stalls = new Stalls()
beforeAll(async () => stalls.watch((await newBed(CELL_LEASE_MS)).store))

/** Not always the first one, and not those that the SQL stores play. */
function chosen(row: PossibleRow, index: number): Cell {
  const cells = cellsOf(row)
  return cells[(index * 7 + 4) % cells.length] as Cell
}

describe('turns in Redis, data in MongoDB', () => {
  it(
    'H1–H11, K1–K4, T3–T5, D1, D2: hand-over comes out as the matrix says',
    async () => {
      const played = possibleRows.map(async (row, index) => {
        const cell = chosen(row, index)
        await delay(index * APART_MS)
        const { seen, expected } = await playRow(stalls, newBed, cell, row)
        return { name: nameOf(cell), seen, expected }
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
      const played = Array.from({ length: 12 }, async (_, n) => {
        await delay(n * APART_MS)
        const call = 2 * n + 1
        return { call, outcome: await playCall(stalls, newBed, fault, call) }
      })
      const all = await Promise.all(played)
      const wrong = all.filter(({ outcome }) => isWrong(fault, outcome))
      expect(wrong.map((one) => JSON.stringify(one))).toEqual([])
      expect(all.filter(({ outcome }) => outcome.call !== undefined).length).toBeGreaterThan(8)
    },
    MINUTES,
  )
})
