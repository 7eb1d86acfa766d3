/** Order of the hooks at start and at shutdown, and the warning where there are none (N5, Z11). */
import { describe, expect, it } from '@jest/globals'
import {
  Inject,
  Injectable,
  Module,
  type ModuleMetadata,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { Test } from '@nestjs/testing'
import { ConfigError, MemoryStore, type MessageContext } from '@botmesh/core'
import { MemoryCoordinationHub, MemoryCoordinator } from '@botmesh/core/testing'
import { BotmeshModule, OnMessage } from '../src/index.js'
import { spawnReplica, waitFor } from '../../../test/support/index.js'
import { runApp, TestLogger, until } from './test-app.js'
import { TestProvider } from './test-provider.js'

const HOOKS_OFF = /shutdown hooks are off/

describe('N5: order', () => {
  it('bots start after every module and drain before any; the store closes last', async () => {
    const order: string[] = []
    const note = (what: string) => order.push(what)
    class Store extends MemoryStore {
      async close(): Promise<void> {
        note('store closed')
      }
    }
    class Provider extends TestProvider {
      override start(...args: Parameters<TestProvider['start']>) {
        note('transport started')
        return super.start(...args)
      }
      override async stop(): Promise<void> {
        if (this.state.status !== 'closed') note('transport stopped')
        await super.stop()
      }
    }
    @Injectable()
    class Redis implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown {
      onApplicationBootstrap() {
        note('redis up')
      }
      onModuleDestroy() {
        note('redis closing')
      }
      onApplicationShutdown() {
        note('redis closed')
      }
    }
    @Module({ providers: [Redis], exports: [Redis] })
    class RedisModule {}
    @Injectable()
    class Shop implements OnModuleDestroy {
      constructor(@Inject(Redis) readonly redis: Redis) {}
      @OnMessage()
      async slow(ctx: MessageContext) {
        note('handling')
        await new Promise((resolve) => setTimeout(resolve, 50))
        await ctx.reply('done')
        note('handled')
      }
      onModuleDestroy() {
        note('shop closing')
      }
    }
    const provider = new Provider()
    const { app } = await runApp({
      imports: [
        BotmeshModule.forRootAsync({
          imports: [RedisModule],
          inject: [Redis],
          useFactory: () => ({ provider, store: new Store() }),
        }),
        RedisModule,
      ],
      providers: [Shop],
    })
    await provider.deliver('ana', 'hello')
    await app.close()
    expect(provider.sent).toEqual([{ chatId: 'ana', text: 'done' }])
    expect(order.filter((one) => one !== 'store closed')).toEqual([
      'redis up',
      'transport started',
      'handling',
      'handled',
      'transport stopped',
      'shop closing',
      'redis closing',
      'redis closed',
    ])
    expect(order.indexOf('store closed')).toBeGreaterThan(order.indexOf('redis closing'))
  })

  it('Z7: a standby connects at once when the leader is closed', async () => {
    const hub = new MemoryCoordinationHub()
    const replica = (replicaId: string) => {
      const provider = new TestProvider({ exclusive: true })
      const coordination = { coordinator: new MemoryCoordinator({ hub, replicaId }) }
      return {
        provider,
        imports: [BotmeshModule.forRoot({ provider, store: new MemoryStore(), coordination })],
      }
    }
    const [a, b] = [replica('a'), replica('b')]
    const first = await runApp({ imports: a.imports })
    await until(() => a.provider.state.status === 'open')
    await runApp({ imports: b.imports })
    expect(b.provider.starts).toBe(0)
    const began = performance.now()
    await first.app.close()
    await until(() => b.provider.state.status === 'open')
    expect(performance.now() - began).toBeLessThan(1000)
    expect(a.provider.state.status).toBe('closed')
  })

  it('a bot that cannot start stops the others and fails the application', async () => {
    class Fails extends TestProvider {
      override start(): Promise<void> {
        return Promise.reject(new ConfigError('bad token', { option: 'token' }))
      }
    }
    const good = new TestProvider({ account: 'good' })
    await expect(
      runApp({
        imports: [
          BotmeshModule.forRoot({ provider: good }),
          BotmeshModule.forRoot({ name: 'bad', provider: new Fails() }),
        ],
      }),
    ).rejects.toThrow('bad token')
    expect(good.state.status).toBe('closed')
  })
})

describe('N5: an application that is closed while it starts', () => {
  const REFUSED = { code: 'COORDINATION_UNAVAILABLE', details: { why: 'stopped' } }
  const never = () => new Promise<void>(() => undefined)

  /** Notes its hooks; `ready` is what its bootstrap waits for. */
  function observer(ready: () => Promise<void>) {
    const order: string[] = []
    @Injectable()
    class Database implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown {
      async onApplicationBootstrap() {
        await ready()
        order.push('bootstrapped')
      }
      onModuleDestroy() {
        order.push('closing')
      }
      async onApplicationShutdown() {
        await new Promise((resolve) => setImmediate(resolve))
        order.push('closed')
      }
    }
    @Module({ providers: [Database] })
    class DatabaseModule {}
    return { order, DatabaseModule }
  }

  async function create(module: ModuleMetadata) {
    const testing = await Test.createTestingModule(module).setLogger(new TestLogger()).compile()
    return testing.createNestApplication({ logger: new TestLogger() })
  }

  it('gives up a start that nobody answers, at once; init() rejects when all hooks have run, and nothing is left', async () => {
    let [begun, closed] = [false, false]
    class Silent extends MemoryStore {
      open(): Promise<void> {
        begun = true
        return never()
      }
      async close(): Promise<void> {
        closed = true
      }
    }
    const { order, DatabaseModule } = observer(() => Promise.resolve())
    const [provider, other] = [new TestProvider(), new TestProvider({ account: 'other' })]
    const store = new Silent()
    const coordination = { coordinator: store.coordinator() }
    const app = await create({
      imports: [
        BotmeshModule.forRoot({ provider, store, coordination }),
        BotmeshModule.forRoot({ name: 'other', provider: other }),
        DatabaseModule,
      ],
    })
    const refused = expect(
      app.init().catch((error: unknown) => {
        order.push('init rejects')
        throw error
      }),
    ).rejects.toMatchObject(REFUSED)
    await until(() => begun && other.state.status === 'open')
    const began = performance.now()
    await app.close()
    expect(performance.now() - began).toBeLessThan(1000)
    await refused
    expect(order).toEqual(['bootstrapped', 'closing', 'closed', 'init rejects'])
    expect(other.state.status).toBe('closed')
    expect(closed).toBe(true)
    expect(coordination.coordinator.status.status).toMatch(/idle|stopped/)
  })

  it('does not start its bots any more if it is closed before their turn', async () => {
    let go: (() => void) | undefined
    const { order, DatabaseModule } = observer(() => new Promise((resolve) => (go = resolve)))
    const provider = new TestProvider()
    const app = await create({ imports: [BotmeshModule.forRoot({ provider }), DatabaseModule] })
    const refused = expect(app.init()).rejects.toMatchObject(REFUSED)
    await until(() => go !== undefined)
    await app.close()
    go?.()
    await refused
    expect(order).toEqual(['closing', 'closed', 'bootstrapped'])
    expect(provider.starts).toBe(0)
  })
})

describe.each([
  ['with shutdown hooks', '1'],
  ['with app.close() in a handler of its own', '0'],
])('scenario 27: a process %s', (_name, hooks) => {
  it('finishes what runs, refuses what is new, and ends by itself with nothing left open', async () => {
    const replica = spawnReplica(new URL('./fixtures/closing-app.ts', import.meta.url), { HOOKS: hooks })
    const { url } = await replica.next('listening')
    const post = (id: string) =>
      fetch(`${String(url)}/hook`, { method: 'POST', body: JSON.stringify({ chat: 'ana', text: 'hi', id }) })
    expect((await post('1')).status).toBe(200)
    await replica.next('handling')
    const ended = replica.terminate(5000)
    const refused = await waitFor(async () => (await post('2')).status === 503, {
      what: 'new messages are refused',
    })
    expect(refused).toBe(true)
    await replica.next('handled')
    const { code, signal } = await ended
    expect(hooks === '1' ? signal : code).toBe(hooks === '1' ? 'SIGTERM' : 0)
  })
})

describe('scenario 28: shutdown hooks', () => {
  const imports = () => [BotmeshModule.forRoot({ provider: new TestProvider() })]

  it('a warning at start says that they are off', async () => {
    const { logger } = await runApp({ imports: imports() })
    expect(logger.texts('warn').filter((line) => HOOKS_OFF.test(line))).toHaveLength(1)
  })

  it('no warning when they are on, nor for a handler of the application, nor when switched off', async () => {
    const on = await runApp(
      { imports: imports() },
      { prepare: (app) => app.enableShutdownHooks(['SIGTERM']) },
    )
    expect(on.logger.texts('warn').join()).not.toMatch(HOOKS_OFF)
    const own = () => undefined
    const handled = await runApp({ imports: imports() }, { prepare: () => void process.on('SIGTERM', own) })
    process.off('SIGTERM', own)
    expect(handled.logger.texts('warn').join()).not.toMatch(HOOKS_OFF)
    const silent = await runApp({
      imports: [BotmeshModule.forRoot({ provider: new TestProvider(), shutdownHooksWarning: false })],
    })
    expect(silent.logger.texts('warn').join()).not.toMatch(HOOKS_OFF)
  })

  it('an application without HTTP may switch them on once it has been created', async () => {
    const contextWith = async (hooks: boolean) => {
      const logger = new TestLogger()
      @Module({ imports: imports() })
      class App {}
      const app = await NestFactory.createApplicationContext(App, { logger })
      if (hooks) app.enableShutdownHooks(['SIGTERM'])
      return { app, logger }
    }
    const on = await contextWith(true)
    const off = await contextWith(false)
    await until(() => HOOKS_OFF.test(off.logger.texts('warn').join()))
    expect(on.logger.texts('warn').join()).not.toMatch(HOOKS_OFF)
    await Promise.all([on.app.close(), off.app.close()])
  })

  it("another application's hooks in the same process do not count", async () => {
    await runApp({ imports: imports() }, { prepare: (app) => app.enableShutdownHooks(['SIGTERM']) })
    const { logger } = await runApp({ imports: imports() })
    expect(logger.texts('warn').join()).toMatch(HOOKS_OFF)
  })

  it('hooks for other signals only are not enough', async () => {
    const { logger } = await runApp(
      { imports: imports() },
      { prepare: (app) => app.enableShutdownHooks(['SIGINT']) },
    )
    expect(logger.texts('warn').join()).toMatch(HOOKS_OFF)
  })
})
