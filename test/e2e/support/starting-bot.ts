/**
 * A bot, or a Nest application with one (KIND), as a process that starts against REDIS_URL, which may say nothing. On
 * SIGTERM it stops; no process.exit but in the application whose handler is its own: what ends the others is that nothing
 * is left open. With AGAIN it is then started once more, and stopped.
 */
import 'reflect-metadata'
import { setTimeout as pause } from 'node:timers/promises'
import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { Bot, CoordinationUnavailableError, silentLogger } from '@botmesh/core'
import { FakeProvider } from '@botmesh/core/testing'
import { BotmeshModule } from '@botmesh/nestjs'
import { RedisStore } from '@botmesh/redis-store'
import { tell } from '../../support/replica-side.js'

const { KIND, AGAIN, REDIS_URL: url, PREFIX: prefix = 'e2e' } = process.env
// The data may be elsewhere: then it is the coordinator that waits.
const redis = new RedisStore({ url, prefix })
const config = {
  provider: new FakeProvider(),
  logger: { ...silentLogger, warn: (_: object, text: string) => tell('warned', { text }) },
  ...(KIND === 'coordinator' ? {} : { store: redis }),
  coordination: { coordinator: redis.coordinator({ leaseMs: 3000 }) },
}
process.on('unhandledRejection', (error) => tell('unhandled', { error: String(error) }))

if (KIND === 'nest' || KIND === 'own handler') await application()
else await plain()

async function plain(): Promise<void> {
  const bot = new Bot(config)
  process.once('SIGTERM', () => void bot.stop().then(() => tell('stopped')))
  tell('starting')
  await bot.start().catch(refused)
  if (AGAIN === undefined) return
  await bot.start()
  tell('started')
  await bot.stop()
}

/**
 * As its users write it. With the hooks, what `listen` rejects with would end the process, had the signal not done so
 * before; a handler of one's own has more to do when the application is closed, so there it is caught.
 */
async function application(): Promise<void> {
  @Module({ imports: [BotmeshModule.forRoot(config)] })
  class App {
    onApplicationShutdown(): void {
      tell('stopped')
    }
  }
  const app = await NestFactory.create(App, { logger: false })
  const end = async () => {
    await app.close()
    await pause(50) // Flushes its logs, say.
    tell('flushed')
    process.exit(0)
  }
  if (KIND === 'nest') app.enableShutdownHooks()
  else process.once('SIGTERM', () => void end())
  tell('starting')
  try {
    await app.listen(0, '127.0.0.1')
  } catch (error) {
    if (KIND === 'nest') throw error
    if (!(error instanceof CoordinationUnavailableError && error.details.why === 'stopped')) throw error
    refused(error)
  }
}

function refused(error: unknown): void {
  tell('refused', { details: (error as { details?: unknown }).details })
}
