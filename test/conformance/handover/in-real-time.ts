/**
 * Cells and faults on real databases, in real time, each on a bed of its own; played again where the machine stood still
 * (`stalls.ts`).
 */
import { isDeepStrictEqual } from 'node:util'
import type { HandoverBed } from './bed.js'
import { isWrong, playFault, type FaultCase, type FaultOutcome } from './fault-points.js'
import { readMatrix, type Cell, type Outcome, type Row } from './matrix.js'
import { runCell, type Observed } from './run-cell.js'
import type { Stalls } from './stalls.js'

export type PossibleRow = Row & Outcome

/** None but the one that a cell freezes may stand still for so long, also where much else is done on the machine. */
export const CELL_LEASE_MS = 3_000
const FAULT_LEASE_MS = 1_000
/** In leases: two writes, one after the other, are to take less than what comes first after a cell's accident. */
const TOLERABLE = { cell: 0.1, fault: 0.33 }
/** For a test, in which each may be played three times: one time takes less than a minute. */
export const MINUTES = 240_000

/** @param leaseMs of the bed */
export type NewBed = (leaseMs: number) => Promise<HandoverBed>

export const possibleRows = readMatrix().rows.filter(
  (row): row is PossibleRow => row.redis === true && !('impossible' in row),
)

/** A cell of that row, and what it should come to. */
export async function playRow(
  stalls: Stalls,
  newBed: NewBed,
  cell: Cell,
  { before, store, after, events }: PossibleRow,
): Promise<{ seen: Observed; expected: Observed }> {
  const expected = { before, store, after, events, errors: [] }
  const once = onNewBed(newBed, CELL_LEASE_MS, (bed) => runCell(bed, cell))
  const seen = await stalls.play(
    once,
    (one) => isDeepStrictEqual(one, expected),
    TOLERABLE.cell * CELL_LEASE_MS,
  )
  return { seen, expected }
}

export function playCall(
  stalls: Stalls,
  newBed: NewBed,
  fault: FaultCase,
  call: number,
): Promise<FaultOutcome> {
  const once = onNewBed(newBed, FAULT_LEASE_MS, (bed) => playFault(bed, fault, call))
  return stalls.play(once, (one) => !isWrong(fault, one), TOLERABLE.fault * FAULT_LEASE_MS)
}

function onNewBed<T>(newBed: NewBed, leaseMs: number, play: (bed: HandoverBed) => Promise<T>) {
  return async (): Promise<T> => {
    const bed = await newBed(leaseMs)
    try {
      return await play(bed)
    } finally {
      await bed.close()
    }
  }
}
