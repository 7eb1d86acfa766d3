/**
 * One cell of the matrix, played: a conversation is brought to its moment on replica `a`, the accident happens, and the
 * user goes on writing to replica `b`. The same on every bed.
 */
import { SendError, type Bot, type HandoverOptions } from '@botmesh/core'
import { CHAT_KEY, type HandoverBed, type Replica } from './bed.js'
import { define, LEAD_UP, Obstacle, RUNNING, type Scene } from './conversations.js'
import type { Accident, Cell, Handover, Outcome } from './matrix.js'

/** In leases: how long things take in every cell. */
const TIMES = { settle: 2, drain: 0.5, timeout: 4, retry: 0.5 }

/** What is seen, and what should never be. */
export type Observed = Outcome & { errors: string[] }

/** What the user writes after the accident. */
const THEN = { timer: ['bad', 'blue'], others: ['L', 'blue'] }

export async function runCell(bed: HandoverBed, cell: Cell): Promise<Observed> {
  const scene: Scene = {
    kind: cell.conversation,
    moment: cell.moment,
    obstacle: new Obstacle(),
    timeoutMs: TIMES.timeout * bed.leaseMs,
  }
  const options = optionsOf(bed, cell)
  const make = (name: string) =>
    bed.replica(name, { ...options, define: (bot: Bot) => define(bot, scene, name === 'b') })
  const a = await make('a')
  const b = await make('b')
  for (const body of LEAD_UP[cell.moment]) {
    const said = bed.said.length
    void a.receive({ id: `${body}-1`, body }).catch(() => undefined)
    await bed.until(() => bed.said.length > said || scene.obstacle.met, 5)
    await bed.pass(0.1)
  }
  const before = bed.said.length
  if (RUNNING.has(cell.moment) && !scene.obstacle.met) throw new Error('The moment was not reached.')
  await happen(bed, cell.accident, a)
  const store = await bed.stored(CHAT_KEY)
  await goOn(bed, cell, { a, b, scene })
  const replicas = [a, b]
  return {
    before: bed.said.slice(0, before),
    store,
    after: bed.said.slice(before),
    events: eventsOf(replicas),
    errors: replicas.flatMap(({ errors }) => errors.filter(isUnexpected).map(String)),
  }
}

function optionsOf(bed: HandoverBed, { handover, durability, conversation }: Cell) {
  const settleMs = TIMES.settle * bed.leaseMs
  const retryMs = TIMES.retry * bed.leaseMs
  const chosen = handoverOf(handover, conversation)
  return {
    coordination: { settleMs, ...(chosen === undefined ? {} : { handover: chosen }) },
    config: {
      drainMs: TIMES.drain * bed.leaseMs,
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

async function happen(bed: HandoverBed, accident: Accident, a: Replica): Promise<void> {
  switch (accident) {
    case 'killed':
      return a.kill()
    case 'frozen':
      return a.freeze()
    case 'stopped':
      return a.stop()
    case 'cut':
      // The last handler of the lead-up ended a tenth of a lease ago.
      return bed.pass(TIMES.settle + 0.1)
  }
}

async function goOn(
  bed: HandoverBed,
  { moment, accident }: Cell,
  { a, b, scene }: { a: Replica; b: Replica; scene: Scene },
): Promise<void> {
  const [first, second] = moment === 'timer-pending' ? THEN.timer : THEN.others
  const write = (body = '') => void b.receive({ id: `${body}-2`, body }).catch(() => undefined)
  await bed.pass(2)
  write(first)
  await bed.pass(1.5)
  // Whoever was held up goes on now, if it lives: too late to have any effect.
  if (accident === 'frozen') a.thaw()
  if (accident !== 'killed') scene.obstacle.remove()
  await bed.pass(moment === 'timer-pending' ? TIMES.timeout : 0.5)
  write(second)
  await bed.pass(0.5)
}

function eventsOf(replicas: readonly Replica[]): string[] {
  const events = replicas.flatMap(({ handovers }) => handovers)
  const named = events.map(({ outcome, reason }) =>
    reason === undefined ? outcome : `${outcome} (${reason})`,
  )
  return [...new Set(named)]
}

/** That a send's fate is unknown is part of some outcomes; it is never repeated (D2). */
function isUnexpected(error: unknown): boolean {
  return !(error instanceof SendError && error.outcome === 'uncertain')
}
