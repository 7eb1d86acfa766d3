/**
 * What the bot of `bot-replica.ts` answers; all else is echoed.
 *
 *   slow 500        works for 500 ms without blocking, then replies
 *   block a 3000    on replica a blocks the event loop for 3 s, then replies; elsewhere replies at once
 *   hang a          replies, and on replica a never ends
 *   count           adds one to the writer's counter in `ctx.user` and replies with it
 *   order           a persistent flow: two questions and a booking
 *   patient 1500    a persistent flow: two questions with a timeout of 1.5 s each
 */
import { setTimeout as delay } from 'node:timers/promises'
import { LeaseLostError, WaitTimeoutError, type Bot, type MessageContext } from '@botmesh/core'

type Report = (event: string, fields?: object) => void

export function addHandlers(bot: Bot, replicaId: string, report: Report): void {
  const reply = async (ctx: MessageContext, text: string) => {
    try {
      await ctx.reply(text)
    } catch (error) {
      const reason = error instanceof LeaseLostError ? error.reason : String(error)
      report('send-refused', { id: ctx.message.id, reason })
      throw error
    }
  }
  bot.before('message', ({ message, fence, previousHolder }) => {
    report('handling', { id: message.id, chat: message.chatId, body: message.body, fence, previousHolder })
  })
  bot.hears(/^slow (\d+)/, async (ctx) => {
    // Goes on when its turn is lost, but does not keep a process alive that has been stopped.
    await delay(Number(ctx.match?.[1]), undefined, { ref: false })
    await reply(ctx, `did ${ctx.body}`)
  })
  bot.hears(/^block (\S+) (\d+)/, async (ctx) => {
    if (ctx.match?.[1] === replicaId) blockLoop(Number(ctx.match[2]))
    await reply(ctx, `did ${ctx.body}`)
  })
  bot.hears(/^hang (\S+)/, async (ctx) => {
    await reply(ctx, `did ${ctx.body}`)
    report('replied', { id: ctx.message.id })
    if (ctx.match?.[1] === replicaId) await new Promise(() => undefined)
  })
  bot.hears('count', async (ctx) => {
    const count = Number(ctx.user['count'] ?? 0) + 1
    await delay(2) // Long enough for another replica to come between, if it could.
    ctx.user['count'] = count
    await reply(ctx, `count ${count}`)
  })
  bot.onMessage((ctx) => reply(ctx, `echo ${ctx.body}`))
  addFlows(bot)
}

function addFlows(bot: Bot): void {
  bot
    .flow<{ size: string; color: string }>('order', { on: 'order' })
    .ask('size', 'size?')
    .ask('color', 'color?')
    .do('book', (c) => c.say(`ordered ${c.state.size} ${c.state.color}`))
    .persistent()
  bot
    .flow<{ timeoutMs: number }>('patient', { on: /^patient (\d+)/ })
    .step('first', async (c) => {
      c.state.timeoutMs ??= Number(c.message.body.split(' ')[1])
      try {
        await c.ask('first?', { timeout: c.state.timeoutMs })
      } catch (error) {
        if (!(error instanceof WaitTimeoutError)) throw error
        await c.say('first timed out')
        return c.end()
      }
    })
    .step('second', async (c) => {
      try {
        await c.ask('second?', { timeout: c.state.timeoutMs })
      } catch (error) {
        if (!(error instanceof WaitTimeoutError)) throw error
        await c.say('second timed out')
      }
    })
    .persistent()
}

/** Nothing of this process runs meanwhile. */
export function blockLoop(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
