/** Hand-overs in real time with turns in Redis and data in another store: the same for each. */
import { expect, it } from '@jest/globals'
import type { FaultCase } from './fault-points.js'
import { MINUTES, type CellPlay, type FaultPlay, type InRealTime } from './in-real-time.js'

export interface InRealTimePlays {
  cells: readonly CellPlay[]
  /** Of a flow, with durability. */
  crashes: readonly Omit<FaultPlay, 'fault'>[]
  /** So many flows at least are to have had as many calls. */
  leastCrashed: number
}

export function inRealTimeSuite(
  inRealTime: InRealTime,
  { cells, crashes, leastCrashed }: InRealTimePlays,
): void {
  it(
    'H1–H11, K1–K4, T3–T5, D1, D2: hand-over comes out as the matrix says',
    async () => {
      const { seen, expected } = await inRealTime.cells(cells)
      expect(seen).toEqual(expected)
    },
    MINUTES,
  )

  it(
    'scenario 5, D1, D2, H8: a crash at the n-th call loses nothing, does nothing twice, and the other replica completes it',
    async () => {
      const fault: FaultCase = { subject: 'flow', fault: 'crash', durable: true }
      const { wrong, met } = await inRealTime.faults(crashes.map((one) => ({ ...one, fault })))
      expect(wrong).toEqual([])
      expect(met.length).toBeGreaterThanOrEqual(leastCrashed)
    },
    MINUTES,
  )
}
