/**
 * The conversation of the matrix, once per kind and moment: it greets, asks for a size and a colour and says both. Where
 * a moment needs it, the replica that runs it first is held up in the middle (`Obstacle`).
 */
import { WaitTimeoutError, type Bot, type ConversationContext, type StepContext } from '@botmesh/core'
import type { ConversationKind, Moment } from './matrix.js'

export interface Order {
  size?: string
  colour?: string
  /** Of a flow that cannot be forwarded. */
  since?: Date
}

/** Holds up whoever comes first, until it is removed; others pass. */
export class Obstacle {
  private used = false
  private open: () => void = () => undefined
  private readonly removed = new Promise<void>((resolve) => (this.open = resolve))

  /** @param onMet called when somebody comes to stand before it. */
  constructor(private readonly onMet: () => void = () => undefined) {}

  async pass(): Promise<void> {
    if (this.used) return
    this.used = true
    this.onMet()
    await this.removed
  }

  /** Somebody stands before it, or did. */
  get met(): boolean {
    return this.used
  }

  remove(): void {
    this.open()
  }
}

/** What steps and conversations have in common. */
type Talk = Pick<ConversationContext, 'ask' | 'say'>

export interface Scene {
  kind: ConversationKind
  moment: Moment
  obstacle: Obstacle
  /** Of `timer-pending`. */
  timeoutMs: number
}

/** Which messages bring the conversation to its moment. */
export const LEAD_UP: Record<Moment, readonly string[]> = {
  'before-question': ['order'],
  'first-question': ['order'],
  'first-answer': ['order', 'M'],
  'later-question': ['order', 'M'],
  'later-answer': ['order', 'M', 'red'],
  'inside-do': ['order', 'M'],
  'timer-pending': ['order'],
  form: ['order', 'M'],
}

/** Moments at which code of the conversation runs, so that its chat's turn is held. */
export const RUNNING: ReadonlySet<Moment> = new Set([
  'before-question',
  'first-answer',
  'later-answer',
  'inside-do',
])

/** Defines it on a replica. @param later true: this replica runs the newer code of a rolling deploy. */
export function define(bot: Bot, scene: Scene, later: boolean): void {
  if (scene.kind === 'async') defineConversation(bot, scene)
  else if (!(scene.kind === 'persistent-removed' && later)) defineFlow(bot, scene, later)
  // A bot without any flow would not look for what others left.
  bot.flow('other').ask('why', 'Why?')
  bot.onMessage((ctx) => ctx.reply(`rest ${ctx.body}`))
}

function defineFlow(bot: Bot, scene: Scene, later: boolean): void {
  const { kind, moment } = scene
  const flow = bot.flow<Order>('order', { on: 'order' })
  const first = kind === 'persistent-renamed' && later ? 'talla' : 'size'
  switch (moment) {
    case 'inside-do':
      flow
        .ask('size', 'Size?')
        .do('work', (c) => work(c, scene))
        .ask('colour', 'Colour?')
      break
    case 'form':
      flow.form('both', [
        { name: 'size', question: 'Size?' },
        { name: 'colour', question: 'Colour?' },
      ])
      break
    case 'timer-pending':
      flow.step(first, (c) => timed(c, scene))
      break
    case 'later-question':
    case 'later-answer':
      flow.step(first, async (c) => {
        const { size, colour } = await bothQuestions(c, scene)
        Object.assign(c.state, { size, colour })
      })
      break
    default:
      flow.step(first, async (c) => {
        if (kind === 'plain-unforwardable') c.state.since = new Date(0)
        c.state.size = await sizeQuestion(c, scene)
      })
      flow.ask('colour', 'Colour?')
  }
  if (moment !== 'timer-pending') flow.step('end', (c) => c.say(`${c.state.size} ${c.state.colour}`))
  const extended = kind === 'plain-changed' || kind === 'persistent-extended'
  if (extended && later) flow.step('thanks', (c) => c.say('Thanks'))
  if (kind.startsWith('persistent')) flow.persistent()
}

function defineConversation(bot: Bot, scene: Scene): void {
  bot.conversation(
    'order',
    async (c) => {
      if (scene.moment === 'timer-pending') return timed(c, scene)
      const { size, colour } = await bothQuestions(c, scene)
      await c.say(`${size} ${colour}`)
    },
    { on: 'order' },
  )
}

async function sizeQuestion(c: Talk, { moment, obstacle }: Scene): Promise<string> {
  await c.say('Hello')
  if (moment === 'before-question') await obstacle.pass()
  return c.ask('Size?', { validate: () => (moment === 'first-answer' ? held(obstacle) : true) })
}

async function bothQuestions(c: Talk, scene: Scene): Promise<Required<Omit<Order, 'since'>>> {
  const { moment, obstacle } = scene
  const size = await sizeQuestion(c, scene)
  const validate = () => (moment === 'later-answer' ? held(obstacle) : true)
  return { size, colour: await c.ask('Colour?', { validate }) }
}

async function held(obstacle: Obstacle): Promise<true> {
  await obstacle.pass()
  return true
}

async function work(c: StepContext<Order>, { obstacle }: Scene): Promise<void> {
  await c.say('Working')
  await obstacle.pass()
  await c.say('Worked')
}

async function timed(c: Talk, { timeoutMs }: Scene): Promise<void> {
  try {
    await c.ask('Size?', { timeout: timeoutMs, validate: ({ body }) => body.length === 1 || 'No' })
  } catch (error) {
    if (!(error instanceof WaitTimeoutError)) throw error
    await c.say('Too late')
  }
}
