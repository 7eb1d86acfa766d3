/** One replica of the backend as a process. */
import 'reflect-metadata'
import { NestFactory } from '@nestjs/core'
import { RedisStore } from '@botmesh/redis-store'
import { WebchatProvider } from '@botmesh/webchat'
import { AppModule } from './app.module.js'

const { REDIS_URL, WEBCHAT_SECRET = '', PORT = '3000' } = process.env
const store = new RedisStore({ url: REDIS_URL, prefix: 'shop' })

const app = await NestFactory.create(
  AppModule.with({
    provider: new WebchatProvider({ account: 'shop', secret: WEBCHAT_SECRET }),
    store,
    coordination: { coordinator: store.coordinator({ leaseMs: '15s' }) },
    durability: true,
  }),
)
app.enableShutdownHooks() // Before listen: a deploy then hands chats over at once.
await app.listen(Number(PORT))
