/** grammY in one process, with the sequentialize of its runner and an API that answers at once. */
import { Bot } from 'grammy'
import { sequentialize } from '@grammyjs/runner'

export async function start() {
  const bot = new Bot('1:bench', {
    botInfo: { id: 1, is_bot: true, first_name: 'bench', username: 'bench_bot' },
  })
  bot.api.config.use(async () => ({ ok: true, result: { message_id: 1 } }))
  bot.use(sequentialize((ctx) => String(ctx.chat?.id)))
  const works = new Map()
  bot.on('message', async (ctx) => {
    await works.get(ctx.update.update_id)()
    await ctx.reply('hello')
  })
  let serial = 0
  return {
    async turn(key, work) {
      serial += 1
      const update = serial
      works.set(update, work)
      const id = Number(key.slice(-9))
      await bot.handleUpdate({
        update_id: update,
        message: {
          message_id: update,
          date: 0,
          chat: { id, type: 'private', first_name: 'a' },
          from: { id, is_bot: false, first_name: 'a' },
          text: 'hello',
        },
      })
      works.delete(update)
      return { fence: 0 }
    },
    stop: async () => undefined,
  }
}
