/**
 * A covering selection of the hand-over matrix on a real Redis, in real time: one cell of each row that says so, all at
 * once, each under a prefix of its own (H1–H11, K1–K4, T3–T5, D1, D2); and a replica that dies at its n-th call.
 */
import { randomUUID } from 'node:crypto'
import { describe, expect, it } from '@jest/globals'
import { sharedRedisUrl } from '../../support/index.js'
import type { FaultCase } from './fault-points.js'
import { chosenCell, InRealTime, MINUTES, possibleRows } from './in-real-time.js'
import { RedisBed } from './redis-bed.js'

/** Nothing waits for a disk here, so nothing is excused by one. */
const inRealTime = new InRealTime(null, { cell: 2_000, fault: 1_000 })

const run = `handover-${randomUUID()}`
let beds = 0

async function newBed(leaseMs: number): Promise<RedisBed> {
  return new RedisBed(await sharedRedisUrl(), `${run}-${beds++}`, leaseMs)
}

const cells = possibleRows.map((row, index) => ({ newBed, row, cell: chosenCell(row, index) }))

describe('H1–H11, K1–K4, T3–T5, D1, D2: hand-over on Redis', () => {
  it('has every accident and both kinds of durability among its cells', () => {
    const all = cells.map(({ cell }) => cell)
    expect(new Set(all.map(({ accident }) => accident)).size).toBe(4)
    expect(new Set(all.map(({ durability }) => durability)).size).toBe(2)
    expect(new Set(all.map(({ handover }) => handover)).size).toBeGreaterThan(3)
  })

  it(
    'comes out as the matrix says',
    async () => {
      const { seen, expected } = await inRealTime.cells(cells)
      expect(seen).toEqual(expected)
    },
    MINUTES,
  )
})

/** More calls than the messages of a flow take; of the others every third is tried. */
const MOST_CALLS = 30

describe('D1, D2, H8, scenario 5: a crash at the n-th call, on Redis', () => {
  it(
    'loses nothing, does nothing twice, and is completed by the other replica',
    async () => {
      const every = Array.from({ length: MOST_CALLS }, (_, index) => index + 1)
      const third = every.filter((_, index) => index % 3 === 0)
      const at = (subject: FaultCase['subject'], calls: number[]) =>
        calls.map((call) => ({ newBed, call, fault: { subject, fault: 'crash', durable: true } as const }))
      const plays = [...at('flow', every), ...at('conversation', third), ...at('handler', third)]
      const { wrong, met } = await inRealTime.faults(plays)
      expect(wrong).toEqual([])
      const inFlows = met.filter(({ fault }) => fault.subject === 'flow')
      expect(inFlows.length).toBeGreaterThan(10)
      expect(inFlows.length).toBeLessThan(MOST_CALLS)
    },
    MINUTES,
  )
})
