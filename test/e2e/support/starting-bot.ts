/**
 * A bot, or a Nest application with one (KIND), as a process that starts against REDIS_URL, which may say nothing. On
 * SIGTERM it stops; no process.exit anywhere: what ends it is that nothing is left open. With AGAIN it is then started
 * once more, and stopped.
 */
import 'reflect-metadata'
import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { Bot, silentLogger } from '@botmesh/core'
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

if (KIND === 'nest') await application()
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

/** As its users write it: what `listen` rejects with ends the process, unless the signal has done so before. */
async function application(): Promise<void> {
  @Module({ imports: [BotmeshModule.forRoot(config)] })
  class App {
    onApplicationShutdown(): void {
      tell('stopped')
    }
  }
  const app = await NestFactory.create(App, { logger: false })
  app.enableShutdownHooks()
  tell('starting')
  await app.listen(0, '127.0.0.1')
}

function refused(error: unknown): void {
  tell('refused', { details: (error as { details?: unknown }).details })
}
