/**
 * (g): heap per idle chat of a bot without coordination, in its own process: what is used after `chats` more of them
 * spoke, less what was used before. Run with --expose-gc. Kinds:
 *
 *   plain     one message, one reply
 *   ended     a persistent flow, begun by one message and ended by the answer
 *   waiting   a persistent flow whose question was not answered: its conversation lives on, which is not idle
 *   kept      as plain, and a KiB kept for each chat on purpose: whether a leak would be seen
 */
import { setImmediate as next } from 'node:timers/promises'
import { Bot } from '@botmesh/core'

const { kind, chats, warmUp } = JSON.parse(process.argv[2])
const IN_FLIGHT = 64
/** 1 KiB of numbers, and some bytes for the array itself. */
const NUMBERS = 128
const kept = []
let sent = 0
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
    sent += 1
    return { id: '1' }
  },
}
const bot = new Bot({ provider })
bot.on('error', ({ error }) => {
  throw error
})
if (kind === 'plain' || kind === 'kept') {
  bot.onMessage((ctx) => {
    if (kind === 'kept') kept.push(Array.from({ length: NUMBERS }, () => 0))
    return ctx.reply('hello')
  })
} else {
  bot
    .flow('order', { on: 'order' })
    .ask('size', 'Which size?')
    .do('confirm', (c) => c.say(`One shirt, ${String(c.state.size)}.`))
    .persistent()
}
await bot.start()
const bodies = kind === 'ended' ? ['order', 'M'] : ['order']

/** Each of the chats says what its kind has to say, and gets a reply to each. */
async function speak(from, to) {
  const before = sent
  for (const [part, body] of bodies.entries()) {
    for (let n = from; n < to; n += 1) {
      const chat = `chat-${n}`
      const shape = { type: 'text', isGroup: false, timestamp: 0 }
      void provider.sink.message({ ...shape, id: `m${n}.${part}`, chatId: chat, from: chat, body })
      while (bot.health().inFlight >= IN_FLIGHT) await next()
    }
    while (bot.health().inFlight > 0) await next()
  }
  const expected = (to - from) * bodies.length
  if (sent - before !== expected) throw new Error(`${kind}: ${sent - before} replies of ${expected}`)
}

async function heap() {
  // What the last turn still held is let go of.
  await next()
  globalThis.gc()
  globalThis.gc()
  return process.memoryUsage().heapUsed
}

// Code, tables and the ids that are remembered against duplicates, which are bounded, have their size afterwards.
await speak(0, warmUp)
const before = await heap()
await speak(warmUp, warmUp + chats)
const after = await heap()
await bot.stop()
process.send({ heap: (after - before) / chats }, () => process.disconnect())
