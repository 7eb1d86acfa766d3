/**
 * A covering selection of the hand-over matrix with data in MongoDB (where `MONGO_URL` is given; else on the double of a
 * server) beside turns in a real Redis, in real time: one cell of each row that says so (H1–H11, K1–K4, D1, D2); and a
 * replica that dies at its n-th call.
 */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { sharedRedisUrl } from '../../support/index.js'
import type { FaultCase } from './fault-points.js'
import { chosenCell, InRealTime, MINUTES, possibleRows } from './in-real-time.js'
import { MongoBed } from './mongo-bed.js'
import { mongoPlace } from './mongo-places.js'
import { Stalls } from './stalls.js'

/** Not the cells that the SQL stores play. */
const TURN = 4

const run = `h${randomUUID().slice(0, 8)}`
let beds = 0

async function newBed(leaseMs?: number): Promise<MongoBed> {
  const [redisUrl, place] = await Promise.all([sharedRedisUrl(), mongoPlace(`${run}n${beds++}`)])
  return new MongoBed(redisUrl, place, leaseMs)
}

const stalls = new Stalls()
const inRealTime = new InRealTime(stalls)
beforeAll(async () => stalls.watch((await newBed()).store))

describe('turns in Redis, data in MongoDB', () => {
  it(
    'H1–H11, K1–K4, T3–T5, D1, D2: hand-over comes out as the matrix says',
    async () => {
      const plays = possibleRows.map((row, index) => ({ newBed, row, cell: chosenCell(row, index, TURN) }))
      const { seen, expected } = await inRealTime.cells(plays)
      expect(seen).toEqual(expected)
    },
    MINUTES,
  )

  it(
    'scenario 5, D1, D2, H8: a crash at the n-th call loses nothing, does nothing twice, and the other replica completes it',
    async () => {
      const fault: FaultCase = { subject: 'flow', fault: 'crash', durable: true }
      const plays = Array.from({ length: 12 }, (_, n) => ({ newBed, fault, call: 2 * n + 1 }))
      const { wrong, met } = await inRealTime.faults(plays)
      expect(wrong).toEqual([])
      expect(met.length).toBeGreaterThan(8)
    },
    MINUTES,
  )
})
