/**
 * Cells and faults on real servers, in real time, all at once, each on a bed of its own; played again where the machine
 * stood still (`stalls.ts`). What each store's spec has of its own is where its beds lie and which cells it plays.
 */
import { isDeepStrictEqual } from 'node:util'
import type { HandoverBed } from './bed.js'
import { isWrong, playFault, type FaultCase, type FaultOutcome } from './fault-points.js'
import { cellsOf, nameOf, readMatrix, type Cell, type Outcome, type Row } from './matrix.js'
import { runCell, type Observed } from './run-cell.js'
import type { Stalls } from './stalls.js'

export type PossibleRow = Row & Outcome

/** @param leaseMs of the bed; somewhere nobody has been */
export type NewBed = (leaseMs: number) => Promise<HandoverBed>

/** Where it is played. */
interface Place {
  newBed: NewBed
  /** If there are several, for what is said of a cell that came out wrong. */
  place?: string
}

export interface CellPlay extends Place {
  row: PossibleRow
  cell: Cell
}

export interface FaultPlay extends Place {
  fault: FaultCase
  /** At which call, from 1. */
  call: number
}

/** For a test, in which each may be played three times: one time takes less than a minute. */
export const MINUTES = 240_000

/** Nobody but the one that a cell freezes may stand still for so long, also where much else is done on the machine. */
const LEASES_MS = { cell: 3_000, fault: 1_000 }
/**
 * In leases, how long a write may take: of a cell two of them, one after the other, less than what comes first after its
 * accident; of a fault one, less than what makes another replica take over.
 */
const TOLERABLE = { cell: 0.1, fault: 0.33 }

/** One of each is played where time is real. */
export const possibleRows = readMatrix().rows.filter(
  (row): row is PossibleRow => row.redis === true && !('impossible' in row),
)

/**
 * A cell of the row with this index, not always the first one: accidents, settings and durability all get their turn.
 * @param turn which: another one for each place
 */
export function chosenCell(row: PossibleRow, index: number, turn = 0): Cell {
  const cells = cellsOf(row)
  return cells[(index * 7 + turn) % cells.length] as Cell
}

export class InRealTime {
  constructor(
    /** Null: what comes out wrong is never played again. */
    private readonly stalls: Stalls | null,
    private readonly leasesMs = LEASES_MS,
  ) {}

  /** @returns what came out of all of them, and what should, so that all that differ are seen at once */
  async cells(plays: readonly CellPlay[]): Promise<{ seen: object[]; expected: object[] }> {
    const all = await Promise.all(
      plays.map(async (play) => {
        const { row, cell, place } = play
        const { before, store, after, events } = row
        const expected: Observed = { before, store, after, events, errors: [] }
        const name = place === undefined ? nameOf(cell) : `${place}: ${nameOf(cell)}`
        return { name, expected, seen: await this.cell(name, play, expected) }
      }),
    )
    return {
      seen: all.map(({ name, seen }) => ({ name, ...seen })),
      expected: all.map(({ name, expected }) => ({ name, ...expected })),
    }
  }

  /** @returns what came out wrong, in words, and those that had as many calls, so that there was a fault */
  async faults(plays: readonly FaultPlay[]): Promise<{ wrong: string[]; met: FaultPlay[] }> {
    const all = await Promise.all(plays.map(async (play) => ({ play, outcome: await this.fault(play) })))
    const wrong = all.filter(({ play, outcome }) => isWrong(play.fault, outcome))
    const met = all.filter(({ outcome }) => outcome.call !== undefined)
    return { wrong: wrong.map((one) => JSON.stringify(one)), met: met.map(({ play }) => play) }
  }

  private cell(name: string, { newBed, cell }: CellPlay, expected: Observed): Promise<Observed> {
    const leaseMs = this.leasesMs.cell
    return this.play(
      onNewBed(newBed, leaseMs, (bed) => runCell(bed, cell)),
      (seen) => isDeepStrictEqual(seen, expected),
      { name, tolerableMs: TOLERABLE.cell * leaseMs },
    )
  }

  private fault({ newBed, fault, call, place = '' }: FaultPlay): Promise<FaultOutcome> {
    const leaseMs = this.leasesMs.fault
    return this.play(
      onNewBed(newBed, leaseMs, (bed) => playFault(bed, fault, call)),
      (outcome) => !isWrong(fault, outcome),
      { name: `${place} ${fault.subject}, call ${call}`, tolerableMs: TOLERABLE.fault * leaseMs },
    )
  }

  private play<T>(...[once, isRight, options]: Parameters<typeof Stalls.prototype.play<T>>): Promise<T> {
    return this.stalls === null ? once(() => undefined) : this.stalls.play(once, isRight, options)
  }
}

function onNewBed<T>(newBed: NewBed, leaseMs: number, play: (bed: HandoverBed) => Promise<T>) {
  return async (begun: (at: number) => void): Promise<T> => {
    const bed = await newBed(leaseMs)
    try {
      return await play(bed)
    } finally {
      if (bed.begunAt !== undefined) begun(bed.begunAt)
      await bed.close()
    }
  }
}
