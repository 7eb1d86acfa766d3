/** One replica as a process: with REDIS_URL it is one of several, without it stands alone. */
import { createServer } from 'node:http'
import type { BotConfig } from '@botmesh/core'
import { RedisStore } from '@botmesh/redis-store'
import { WebchatProvider } from '@botmesh/webchat'
import { createBot } from './bot.js'

const { REDIS_URL, PREFIX = 'shop', PORT = '3000', WEBCHAT_SECRET } = process.env

const chat = new WebchatProvider({
  account: 'shop',
  ...(WEBCHAT_SECRET === undefined ? {} : { secret: WEBCHAT_SECRET }),
})
const bot = createBot({ provider: chat, ...shared() })
const server = createServer(chat.middleware())
chat.attach(server)

await bot.start()
server.listen(Number(PORT), () => console.log(`http://localhost:${PORT}/webchat/`))

async function stop(): Promise<void> {
  await bot.stop() // Hands every chat over, then closes the store.
  server.close()
}
process.once('SIGTERM', () => void stop())
process.once('SIGINT', () => void stop())

function shared(): Partial<BotConfig> {
  if (REDIS_URL === undefined) return {}
  const store = new RedisStore({ url: REDIS_URL, prefix: PREFIX })
  return { store, coordination: { coordinator: store.coordinator({ leaseMs: '15s' }) }, durability: true }
}
