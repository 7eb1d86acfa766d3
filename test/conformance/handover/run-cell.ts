/**
 * One cell of the matrix, played: a conversation is brought to its moment on replica `a`, the accident happens, and the
 * user goes on writing to replica `b`. The same on every bed, and with replicas that are processes (`process-stage.ts`).
 */
import { SendError, type Bot, type HandoverOptions } from '@botmesh/core'
import { CHAT_KEY, type HandoverBed, type HandoverEvent, type Replica, type Stored } from './bed.js'
import { define, LEAD_UP, Obstacle, RUNNING, type Scene } from './conversations.js'
import { nameOf, type Accident, type Cell, type Handover, type Outcome } from './matrix.js'

/** In leases: how long things take in every cell. */
const TIMES = { settle: 2, drain: 0.5, timeout: 4, retry: 0.5, recordCut: 0.2 }

/** What is seen, and what should never be. */
export type Observed = Outcome & { errors: string[] }

/** What the user writes after the accident. */
const THEN = { timer: ['bad', 'blue'], others: ['L', 'blue'] }

/** A replica as a cell needs it: in the test's own process, or one of its own. */
export interface StageReplica {
  receive(message: { id: string; body: string }): Promise<void>
  kill(): void | Promise<void>
  freeze(): void | Promise<void>
  thaw(): void | Promise<void>
  stop(): Promise<void>
  /** Its conversation was stopped because it took too long for one turn. */
  readonly wasCut: boolean
  /** The message's effects are committed. */
  hasHandled(id: string): boolean
  readonly handovers: readonly Pick<HandoverEvent, 'outcome' | 'reason'>[]
  /** What was reported, but for what `isUnexpected` takes for a part of the outcome. */
  readonly unexpected: readonly string[]
}

/** Where a cell is played. */
export interface Stage {
  readonly leaseMs: number
  /** Starts the replica `a`, which is held up where the cell says so, or `b`. */
  replica(name: 'a' | 'b'): Promise<StageReplica>
  /** `a` stands before its obstacle, or did. */
  heldUp(): boolean
  /** Removes the obstacle. */
  letGo(): void
  pass(leases: number): Promise<void>
  until(condition: () => boolean, leases: number): Promise<void>
  readonly said: readonly string[]
  stored(chatKey: string): Promise<Stored>
}

export function runCell(bed: HandoverBed, cell: Cell): Promise<Observed> {
  return playCell(stageIn(bed, cell), cell)
}

export async function playCell(stage: Stage, cell: Cell): Promise<Observed> {
  const a = await stage.replica('a')
  const b = await stage.replica('b')
  for (const body of LEAD_UP[cell.moment]) {
    const id = `${body}-1`
    void a.receive({ id, body }).catch(() => undefined)
    await stage.until(() => a.hasHandled(id) || stage.heldUp(), 15)
    await stage.pass(0.1)
  }
  const before = stage.said.length
  const replicas = [a, b]
  if (RUNNING.has(cell.moment) && !stage.heldUp()) throw notReached(cell, stage, replicas, 'moment')
  await happen(stage, cell.accident, a)
  if (cell.accident === 'cut' && !a.wasCut) throw notReached(cell, stage, replicas, 'accident')
  const store = await stage.stored(CHAT_KEY)
  await goOn(stage, cell, a, b)
  return {
    before: stage.said.slice(0, before),
    store,
    after: stage.said.slice(before),
    events: eventsOf(replicas),
    errors: replicas.flatMap(({ unexpected }) => unexpected),
  }
}

function notReached(
  cell: Cell,
  { said }: Stage,
  replicas: readonly StageReplica[],
  what: 'moment' | 'accident',
): Error {
  const errors = replicas.map(({ unexpected }) => unexpected)
  const handled = LEAD_UP[cell.moment].filter((body) => replicas[0]?.hasHandled(`${body}-1`))
  return new Error(
    `${nameOf(cell)}: the ${what} was not reached. ${JSON.stringify({ said, handled, errors })}`,
  )
}

/** The cell's replicas on a bed of the test's own process. */
function stageIn(bed: HandoverBed, cell: Cell): Stage {
  const scene = sceneOf(cell, new Obstacle(), bed.leaseMs)
  const options = optionsOf(bed.leaseMs, cell)
  return {
    leaseMs: bed.leaseMs,
    replica: async (name) =>
      onStage(
        await bed.replica(name, { ...options, define: (bot: Bot) => define(bot, scene, name === 'b') }),
      ),
    heldUp: () => scene.obstacle.met,
    letGo: () => scene.obstacle.remove(),
    pass: (leases) => bed.pass(leases),
    until: (condition, leases) => bed.until(condition, leases),
    get said() {
      return bed.said
    },
    stored: (chatKey) => bed.stored(chatKey),
  }
}

function onStage(replica: Replica): StageReplica {
  return {
    receive: (message) => replica.receive(message),
    kill: () => replica.kill(),
    freeze: () => replica.freeze(),
    thaw: () => replica.thaw(),
    stop: () => replica.stop(),
    get wasCut() {
      return replica.lost.some(({ reason }) => reason === 'settled')
    },
    hasHandled: (id) => replica.handled.some(({ message }) => message.id === id),
    handovers: replica.handovers,
    get unexpected() {
      return replica.errors.filter(isUnexpected).map(String)
    },
  }
}

export function sceneOf(cell: Cell, obstacle: Obstacle, leaseMs: number): Scene {
  const { conversation, moment } = cell
  return { kind: conversation, moment, obstacle, timeoutMs: TIMES.timeout * leaseMs }
}

/** Options of the cell's bots. */
export function optionsOf(leaseMs: number, { handover, durability, conversation }: Cell) {
  const settleMs = TIMES.settle * leaseMs
  const retryMs = TIMES.retry * leaseMs
  const chosen = handoverOf(handover, conversation)
  return {
    coordination: { settleMs, ...(chosen === undefined ? {} : { handover: chosen }) },
    config: {
      drainMs: TIMES.drain * leaseMs,
      ...(durability === 'on' ? { durability: { retryMs } } : {}),
    },
  }
}

function handoverOf(handover: Handover, kind: Cell['conversation']): HandoverOptions | undefined {
  if (handover === 'off') return undefined
  // Of plain flows only what is to be forwarded can be found changed, or not to be plain JSON.
  const flows = handover === 'forward' || kind.startsWith('plain-') ? { flows: 'forward' as const } : {}
  switch (handover) {
    case 'forward':
      return flows
    case 'notify':
      return { ...flows, fallback: 'notify', notifyMessage: 'Sorry' }
    case 'function':
      return {
        ...flows,
        fallback: async (_info, ctx) => {
          await ctx.reply(`moved ${ctx.body}`)
          return true
        },
      }
    default:
      return { ...flows, fallback: handover }
  }
}

async function happen(stage: Stage, accident: Accident, a: StageReplica): Promise<void> {
  switch (accident) {
    case 'killed':
      return a.kill()
    case 'frozen':
      return a.freeze()
    case 'stopped':
      return a.stop()
    case 'cut':
      await stage.until(() => a.wasCut, 2 * TIMES.settle)
      // It writes down what it leaves; it begins again only `retry` after that.
      return stage.pass(TIMES.recordCut)
  }
}

async function goOn(
  stage: Stage,
  { moment, accident }: Cell,
  a: StageReplica,
  b: StageReplica,
): Promise<void> {
  const [first, second] = moment === 'timer-pending' ? THEN.timer : THEN.others
  const write = (body = '') => void b.receive({ id: `${body}-2`, body }).catch(() => undefined)
  await stage.pass(2)
  write(first)
  await stage.pass(1.5)
  // Whoever was held up goes on now, if it lives: too late to have any effect.
  if (accident === 'frozen') await a.thaw()
  if (accident !== 'killed') stage.letGo()
  await stage.pass(moment === 'timer-pending' ? TIMES.timeout : 0.5)
  write(second)
  await stage.pass(0.5)
}

function eventsOf(replicas: readonly StageReplica[]): string[] {
  const events = replicas.flatMap(({ handovers }) => handovers)
  const named = events.map(({ outcome, reason }) =>
    reason === undefined ? outcome : `${outcome} (${reason})`,
  )
  return [...new Set(named)]
}

/** That a send's fate is unknown is part of some outcomes; it is never repeated (D2). */
export function isUnexpected(error: unknown): boolean {
  return !(error instanceof SendError && error.outcome === 'uncertain')
}
