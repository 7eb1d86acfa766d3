/** One replica as a process: with REDIS_URL it is one of several, without it stands alone. */
import { createServer } from 'node:http'
import { CoordinationUnavailableError, type BotConfig } from '@botmesh/core'
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

// Before the start, which a signal gives up: it may wait for Redis for a while.
process.once('SIGTERM', () => void stop())
process.once('SIGINT', () => void stop())

try {
  await bot.start()
  server.listen(Number(PORT), () => console.log(`http://localhost:${PORT}/webchat/`))
} catch (error) {
  if (!(error instanceof CoordinationUnavailableError && error.details.why === 'stopped')) throw error
}

async function stop(): Promise<void> {
  await bot.stop() // Hands every chat over, then closes the store.
  server.close()
}

function shared(): Partial<BotConfig> {
  if (REDIS_URL === undefined) return {}
  const store = new RedisStore({ url: REDIS_URL, prefix: PREFIX })
  return { store, coordination: { coordinator: store.coordinator({ leaseMs: '15s' }) }, durability: true }
}
