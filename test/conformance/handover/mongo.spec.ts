/**
 * A covering selection of the hand-over matrix with data in MongoDB (where `MONGO_URL` is given; else on the double of a
 * server) beside turns in a real Redis, in real time: one cell of each row that says so (H1–H11, K1–K4, D1, D2); and a
 * replica that dies at its n-th call.
 */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe } from '@jest/globals'
import { sharedRedisUrl } from '../../support/index.js'
import { chosenCell, InRealTime, possibleRows } from './in-real-time.js'
import { inRealTimeSuite } from './in-real-time.suite.js'
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
  inRealTimeSuite(inRealTime, {
    cells: possibleRows.map((row, index) => ({ newBed, row, cell: chosenCell(row, index, TURN) })),
    crashes: Array.from({ length: 12 }, (_, n) => ({ newBed, call: 2 * n + 1 })),
    leastCrashed: 9,
  })
})
