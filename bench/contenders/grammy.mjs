/** grammY in one process, with the sequentialize of its runner and an API that answers at once. */
import { Bot } from 'grammy'
import { sequentialize } from '@grammyjs/runner'

export async function start() {
  const bot = new Bot('1:bench', {
    botInfo: { id: 1, is_bot: true, first_name: 'bench', username: 'bench_bot' },
  })
  bot.api.config.use(async () => ({ ok: true, result: { message_id: 1 } }))
  bot.use(sequentialize((ctx) => String(ctx.chat?.id)))
  bot.on('message', (ctx) => ctx.reply('hello'))
  let serial = 0
  return {
    async turn(key, work) {
      serial += 1
      const id = Number(key.slice(-9))
      await bot.handleUpdate({
        update_id: serial,
        message: {
          message_id: serial,
          date: 0,
          chat: { id, type: 'private', first_name: 'a' },
          from: { id, is_bot: false, first_name: 'a' },
          text: 'hello',
        },
      })
      await work()
      return { fence: 0 }
    },
    stop: async () => undefined,
  }
}
