/** An application that is closed while it starts: what failed is told, and it ends even if closing fails (N5). */
import { describe, expect, it } from '@jest/globals'
import {
  type INestApplication,
  Module,
  type ModuleMetadata,
  type OnApplicationBootstrap,
} from '@nestjs/common'
import { EventEmitterModule } from '@nestjs/event-emitter'
import { Test } from '@nestjs/testing'
import { type Bot, ConfigError, MemoryStore } from '@botmesh/core'
import { BotmeshModule, getBotToken } from '../src/index.js'
import { TestLogger, until } from './test-app.js'
import { PageTestProvider, TestProvider } from './test-provider.js'

const REFUSED = { code: 'COORDINATION_UNAVAILABLE', details: { why: 'stopped' } }
const BAD_TOKEN = new ConfigError('bad token', { option: 'token' })

/** Its server says nothing, ever. */
class Silent extends MemoryStore {
  begun = false
  open(): Promise<void> {
    this.begun = true
    return new Promise(() => undefined)
  }
}

class Fails extends TestProvider {
  override start(): Promise<void> {
    this.starts++
    return Promise.reject(BAD_TOKEN)
  }
}

async function create(module: ModuleMetadata) {
  const logger = new TestLogger()
  const testing = await Test.createTestingModule(module).setLogger(logger).compile()
  return { app: testing.createNestApplication({ logger }), logger }
}

/** What `init()` rejects with; undefined while it has not. */
function initOf(app: INestApplication) {
  const settled = { error: undefined as unknown }
  const over = app.init().then(
    () => undefined,
    (error: unknown) => (settled.error = error),
  )
  return { settled, over }
}

describe('N5: an application that is closed while it starts', () => {
  it('tells what a bot had failed with meanwhile: in the log, and as the cause', async () => {
    const [store, bad, other] = [new Silent(), new Fails(), new Fails({ account: 'other' })]
    const { app, logger } = await create({
      imports: [
        BotmeshModule.forRoot({ provider: new TestProvider({ account: 'waits' }), store }),
        BotmeshModule.forRoot({ name: 'bad', provider: bad }),
        BotmeshModule.forRoot({ name: 'other', provider: other }),
      ],
    })
    const { over } = initOf(app)
    const failed = ['bad', 'other'].map((name) => app.get<Bot>(getBotToken(name)))
    await until(() => store.begun && failed.every((bot) => bot.health().status === 'idle'))
    expect([bad.starts, other.starts]).toEqual([1, 1])
    await app.close()
    const error = await over
    expect(error).toMatchObject(REFUSED)
    expect((error as Error).cause).toBe(BAD_TOKEN)
    const told = logger.texts('error').filter((line) => line.includes('the bot could not start'))
    expect(told).toHaveLength(2)
    expect(told[0]).toMatch(/bad token/)
    expect(told.map((line) => /\b(bad|other|default)\b(?! token)/.exec(line)?.[1])).toEqual(['bad', 'other'])
  })

  it('has nothing to tell of bots that were only stopped', async () => {
    const store = new Silent()
    const { app, logger } = await create({
      imports: [BotmeshModule.forRoot({ provider: new TestProvider(), store })],
    })
    const { over } = initOf(app)
    await until(() => store.begun)
    await app.close()
    const error = await over
    expect(error).toMatchObject(REFUSED)
    expect((error as Error).cause).toBeUndefined()
    expect(logger.texts('error')).toEqual([])
  })

  it('rejects though its server cannot be closed, which ends the shutdown in the middle', async () => {
    const store = new Silent()
    const { app } = await create({
      imports: [BotmeshModule.forRoot({ provider: new TestProvider(), store })],
    })
    const adapter = app.getHttpAdapter()
    adapter.close = () => Promise.reject(new Error('cannot be closed'))
    const { over } = initOf(app)
    await until(() => store.begun)
    await expect(app.close()).rejects.toThrow('cannot be closed')
    expect(await over).toMatchObject(REFUSED)
  })

  it('waits for modules that take their time, before and after the server has closed', async () => {
    const store = new Silent()
    const order: string[] = []
    const slowly = async (what: string) => {
      await new Promise((resolve) => setTimeout(resolve, 1500))
      order.push(what)
    }
    class Slow {
      onModuleDestroy = () => slowly('closing')
      onApplicationShutdown = () => slowly('closed')
    }
    const { app } = await create({
      imports: [BotmeshModule.forRoot({ provider: new TestProvider(), store })],
      providers: [Slow],
    })
    const rejected = initOf(app).over.then(() => order.push('init rejects'))
    await until(() => store.begun)
    await app.close()
    await rejected
    expect(order).toEqual(['closing', 'closed', 'init rejects'])
  })

  it('opens nothing if it was closed before the turn of its bots', async () => {
    let go: (() => void) | undefined
    class Waits implements OnApplicationBootstrap {
      onApplicationBootstrap(): Promise<void> {
        return new Promise((resolve) => (go = resolve))
      }
    }
    @Module({ providers: [Waits] })
    class WaitsModule {}
    const provider = new PageTestProvider()
    const { app, logger } = await create({
      imports: [EventEmitterModule.forRoot(), BotmeshModule.forRoot({ provider }), WaitsModule],
    })
    const { over } = initOf(app)
    await until(() => go !== undefined)
    await app.close()
    const before = logger.lines.length
    go?.()
    expect(await over).toMatchObject(REFUSED)
    expect(provider.attachedTo).toEqual([])
    expect(app.get<Bot>(getBotToken('default')).listenerCount('message:handled')).toBe(0)
    expect(logger.lines.slice(before)).toEqual([])
  })
})
