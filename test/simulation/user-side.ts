/** What simulated users can meet: an order flow, a survey, plain and slow answers. Every text names its message. */
import {
  WaitTimeoutError,
  type Bot,
  type Clock,
  type ConversationContext,
  type StepContext,
} from '@botmesh/core'

export interface Order {
  /** The message that it was entered with: what a timeout is due to. */
  entered?: string
  answers: string[]
}

/** Told whenever code of the application is about to speak, with the fence that it acts under. */
export type Speaks = (chatId: string, fence: number | null) => void

export const BODIES = ['order', 'order', 'survey', 'M', 'red', 'slow', 'hello', 'hello'] as const

const SLOW_MS = 4000
const LONG_MS = 9000
/** Of the first question: longer than a lease, shorter than the rest of a life. */
const TIMEOUT_MS = 40_000

export function define(bot: Bot, clock: () => Clock, speaks: Speaks): void {
  const about = (c: StepContext<Order> | ConversationContext): string => {
    speaks(c.chatId, c.ctx.fence)
    return `(${c.message.id})`
  }
  bot
    .flow<Order>('order', { on: 'order' })
    .step('size', async (c) => {
      c.state.entered ??= c.message.id
      try {
        const { id, body } = await c.askMessage(`Size? ${about(c)}`, { timeout: TIMEOUT_MS })
        // Longer than a stopping replica waits: the answer is kept, and what comes meanwhile waits behind it (H7).
        if (body === 'slow') await pause(clock(), LONG_MS)
        c.state.answers = [id]
        return
      } catch (error) {
        if (!(error instanceof WaitTimeoutError)) throw error
        about(c)
        await c.say(`Late (${c.state.entered})`)
        return c.end()
      }
    })
    .do('stock', async () => pause(clock(), 100))
    .step('colour', async (c) => {
      const { id } = await c.askMessage(`Colour? ${about(c)}`)
      c.state.answers.push(id)
    })
    .step('end', (c) => c.say(`Done ${c.state.answers.join(' ')} ${about(c)}`))
    .persistent()
  bot.conversation(
    'survey',
    async (c) => {
      const mark = await c.askMessage(`Mark? ${about(c)}`)
      await c.say(`Thanks for ${mark.id} ${about(c)}`)
    },
    { on: 'survey' },
  )
  bot.onMessage(async (ctx) => {
    if (ctx.body === 'slow') await pause(clock(), SLOW_MS)
    speaks(ctx.chatId, ctx.fence)
    await ctx.reply(`Heard (${ctx.message.id})`)
  })
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimeout(resolve, ms))
}
