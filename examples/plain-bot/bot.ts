/** What the bot answers, apart from where it runs: the same on every replica, and in the tests. */
import { Bot, type BotConfig } from '@botmesh/core'

interface Order {
  size: string
  address: string
}

const SIZES = ['S', 'M', 'L']

export function createBot(config: BotConfig): Bot {
  const bot = new Bot(config)

  bot
    .flow<Order>('order', { on: ['order', /^buy/i] })
    .ask('size', 'Which size?', { validate: (m) => SIZES.includes(m.body) || 'S, M or L, please.' })
    .ask('address', 'Where shall it go?')
    .do('book', (c) => c.say(`One shirt, ${c.state.size}, to ${c.state.address}. On its way!`))
    .persistent()

  bot.command('cancel', async (ctx) => ctx.reply((await ctx.leave()) ? 'Forgotten.' : 'Nothing to cancel.'), {
    interrupt: true,
  })
  bot.onMessage((ctx) => ctx.reply('Write "order".'))
  return bot
}
