/**
 * A covering selection of the hand-over matrix on a private Redis with replicas that are processes: SIGKILL, SIGTERM,
 * SIGSTOP beyond the lease, and steps that run beyond `settleMs` (H1–H11, K1–K4, T3–T5, D1, D2, scenarios 3, 5, 27).
 * The same table and the same expectations as in one process (`matrix.spec.ts`, `redis.spec.ts`).
 */
import { beforeAll, describe, expect, it } from '@jest/globals'
import { Redis } from 'ioredis'
import { onTestEnd, startRedis } from '../../support/index.js'
import { possibleRows, type PossibleRow } from './in-real-time.js'
import { cellsOf, nameOf, type Accident, type Cell } from './matrix.js'
import { Troupe } from './process-stage.js'
import { playCell } from './run-cell.js'

const LEASE_MS = 2_000
const ACCIDENTS: readonly Accident[] = ['killed', 'stopped', 'frozen', 'cut']

interface Played {
  prefix: string
  cell: Cell
  row: PossibleRow
}

/** Of the rows that are played on Redis: half of the accidents that each allows, other ones for the next row. Settings
 * and durability take turns. */
function cellsWith(accident: Accident): Played[] {
  return possibleRows.flatMap((row, index) => {
    const turn = (ACCIDENTS.indexOf(accident) + index) % 2 === 0
    if (!turn || !row.accident.includes(accident)) return []
    const cells = cellsOf({ ...row, accident: [accident] })
    return [{ row, prefix: `${accident}-${index}`, cell: cells[(index * 7 + 3) % cells.length] as Cell }]
  })
}

let url: string
let admin: Redis

beforeAll(async () => {
  ;({ url } = await startRedis())
  admin = new Redis(url)
  onTestEnd(() => admin.disconnect())
})

describe('H1–H11, K1–K4, T3–T5, D1, D2: hand-over between processes', () => {
  it('has cells of every kind of conversation, and both kinds of durability for every accident', () => {
    const cells = ACCIDENTS.flatMap((accident) => cellsWith(accident).map(({ cell }) => cell))
    expect(new Set(cells.map(({ conversation }) => conversation)).size).toBeGreaterThan(5)
    expect(new Set(cells.map(({ moment }) => moment)).size).toBeGreaterThan(6)
    expect(new Set(cells.map(({ handover }) => handover)).size).toBe(6)
    expect(new Set(cells.map(({ accident, durability }) => `${accident} ${durability}`)).size).toBe(8)
  })

  it('comes out as the matrix says when the replica is killed, stopped, frozen, or cuts its step', async () => {
    const all = (await Promise.all(ACCIDENTS.map(playAll))).flat()
    expect(all.map(({ seen }) => seen)).toEqual(all.map(({ expected }) => expected))
  }, 90_000)
})

async function playAll(accident: Accident) {
  const cells = cellsWith(accident)
  const troupe = new Troupe(url, LEASE_MS, cells, admin)
  await troupe.start()
  const all = await Promise.all(cells.map((one) => played(troupe, one)))
  expect(await troupe.end()).toEqual([])
  return all
}

async function played(troupe: Troupe, one: Played) {
  const { before, store, after, events } = one.row
  const cell = nameOf(one.cell)
  const expected = { cell, before, store, after, events, errors: [] as string[] }
  try {
    return { seen: { cell, ...(await playCell(troupe.stageOf(one), one.cell)) }, expected }
  } catch (error) {
    troupe.giveUp(one)
    return { seen: { cell, error: String(error) }, expected }
  }
}
