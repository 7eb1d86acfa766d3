/**
 * Whole messages through a `Bot`: in, turn, flow step or handler, reply, commit. The transport is one that answers at
 * once. Modes: `flow` (a persistent flow step, on Redis), `durable` (the same with journal and outbox), `alone` (a
 * plain reply, one process, nothing shared).
 */
import { Bot } from '@botmesh/core'
import { RedisStore } from '@botmesh/redis-store'

class InstantProvider {
  id = 'instant:bench'
  capabilities = {}
  state = { status: 'closed', reason: 'not started' }
  sent = 0
  async start(sink) {
    this.sink = sink
    this.state = { status: 'open' }
    sink.state(this.state)
  }
  async stop() {}
  async send() {
    this.sent += 1
    return { id: String(this.sent) }
  }
}

export async function start({ mode, port, prefix, replica }) {
  const provider = new InstantProvider()
  const bot = new Bot({ provider, ...sharedBy(mode, { port, prefix, replica }) })
  const waiting = new Map()
  bot.on('error', ({ error }) => {
    throw error
  })
  answer(bot, mode, ({ id }) => waiting.get(id)?.work())
  bot.on('message:handled', ({ message, fence }) => {
    const { done } = waiting.get(message.id) ?? {}
    waiting.delete(message.id)
    done?.(fence)
  })
  await bot.start()
  await bot.ready
  let serial = 0
  return {
    /** One message and everything that comes of it. */
    async turn(key, work) {
      serial += 1
      const id = `${replica}-${serial}`
      const handled = new Promise((done) => waiting.set(id, { done, work }))
      await provider.sink.message({
        id,
        chatId: key,
        from: key,
        type: 'text',
        body: 'hello',
        isGroup: false,
        timestamp: serial,
      })
      const fence = await handled
      return { fence: fence ?? 0 }
    },
    stop: () => bot.stop(),
  }
}

function sharedBy(mode, { port, prefix, replica }) {
  if (mode === 'alone') return {}
  const store = new RedisStore({ url: `redis://127.0.0.1:${port}`, prefix })
  return {
    store,
    coordination: { coordinator: store.coordinator({ replicaId: replica }) },
    durability: mode === 'durable',
  }
}

/** @param handle what the oracle times, done by whoever handles a message. One that only begins the flow is not timed. */
function answer(bot, mode, handle) {
  if (mode === 'alone') {
    bot.onMessage(async (ctx) => {
      await handle(ctx.message)
      await ctx.reply('hello')
    })
  } else {
    bot
      .flow('talk', { on: /./ })
      .step('listen', async (c) => {
        c.state.last = await c.ask('And then?')
        await handle(c.message)
        c.state.count = (c.state.count ?? 0) + 1
        return c.goto('listen')
      })
      .persistent()
  }
}
