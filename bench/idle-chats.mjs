/** Heap per chat that spoke once to a bot without coordination. Run with --expose-gc; prints bytes. */
import { Bot } from '@botmesh/core'

const CHATS = 200_000
const provider = {
  id: 'instant:bench',
  capabilities: {},
  state: { status: 'open' },
  async start(sink) {
    this.sink = sink
    sink.state(this.state)
  },
  async stop() {},
  async send() {
    return { id: '1' }
  },
}
const bot = new Bot({ provider })
bot.onMessage((ctx) => ctx.reply('hello'))
await bot.start()

async function speak(from, to) {
  for (let n = from; n < to; n += 1) {
    const chat = `chat-${n}`
    void provider.sink.message({
      id: `m${n}`,
      chatId: chat,
      from: chat,
      type: 'text',
      body: 'hello',
      isGroup: false,
      timestamp: 0,
    })
    if (n % 64 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  while (bot.health().inFlight > 0) await new Promise((resolve) => setImmediate(resolve))
  globalThis.gc()
  globalThis.gc()
  return process.memoryUsage().heapUsed
}

// The ids that are remembered for deduplication are bounded: filled before anything is measured.
const before = await speak(0, 50_000)
const after = await speak(50_000, 50_000 + CHATS)
process.stdout.write(`${Math.round((after - before) / CHATS)}\n`)
await bot.stop()
