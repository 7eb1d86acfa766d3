/** Registration: tokens, several bots, options from elsewhere, and every mistake named (N1). */
import { describe, expect, it } from '@jest/globals'
import { Inject, Injectable, Module } from '@nestjs/common'
import {
  Bot,
  CheckpointStore,
  Coordinator,
  LeaderElection,
  MemoryStore,
  TurnQueue,
  type Provider,
} from '@botmesh/core'
import { MemoryCoordinationHub, MemoryCoordinator } from '@botmesh/core/testing'
import {
  BotmeshModule,
  getBotToken,
  getCheckpointStoreToken,
  getCoordinatorToken,
  InjectBot,
  InjectCoordinator,
  type BotmeshOptions,
  type BotmeshOptionsFactory,
} from '../src/index.js'
import { initApp, runApp } from './test-app.js'
import { TestProvider } from './test-provider.js'

@Injectable()
class Parts {
  constructor(
    readonly bot: Bot,
    readonly coordinator: Coordinator,
    readonly turns: TurnQueue,
    readonly elections: LeaderElection,
    readonly store: CheckpointStore,
  ) {}
}

describe('N1: forRoot', () => {
  it('the class tokens are the default bot, its coordinator and its store, in any module', async () => {
    const store = new MemoryStore()
    const coordinator = new MemoryCoordinator({ hub: new MemoryCoordinationHub() })
    @Module({ providers: [Parts], exports: [Parts] })
    class Feature {}
    const { app } = await runApp({
      imports: [
        BotmeshModule.forRoot({ provider: new TestProvider(), store, coordination: { coordinator } }),
        Feature,
      ],
    })
    const parts = app.get(Parts)
    expect(parts.bot).toBeInstanceOf(Bot)
    expect(parts.bot.name).toBe('default')
    expect(parts.coordinator).toBe(coordinator)
    expect(parts.turns).toBe(coordinator.turns)
    expect(parts.elections).toBe(coordinator.elections)
    expect(parts.store).toBe(store)
    expect(parts.bot.store).toBe(store)
  })

  it('without coordination the tokens are an in-process coordinator that begins at first use', async () => {
    const { app } = await runApp({
      imports: [BotmeshModule.forRoot({ provider: new TestProvider() })],
      providers: [Parts],
    })
    const { coordinator, turns } = app.get(Parts)
    expect(coordinator.status.status).toBe('idle')
    const turn = await turns.take('key')
    if (turn === 'duplicate') throw new Error('unexpected')
    expect(turn.fence).toBeGreaterThan(0)
    await turn.release()
    await app.close()
    expect(coordinator.status.status).toBe('stopped')
  })

  it('several bots have names, and tokens of their own', async () => {
    @Injectable()
    class Both {
      constructor(
        readonly main: Bot,
        @InjectBot('sales') readonly sales: Bot,
        @InjectCoordinator('sales') readonly coordinator: Coordinator,
      ) {}
    }
    const coordinator = new MemoryCoordinator({ hub: new MemoryCoordinationHub() })
    const { app } = await runApp({
      imports: [
        BotmeshModule.forRoot({ provider: new TestProvider() }),
        BotmeshModule.forRoot({
          name: 'sales',
          provider: new TestProvider({ account: 'sales' }),
          coordination: { coordinator },
        }),
      ],
      providers: [Both],
    })
    const both = app.get(Both)
    expect(both.main.provider.id).toBe('test:a')
    expect(both.sales.provider.id).toBe('test:sales')
    expect(both.coordinator).toBe(coordinator)
    expect(app.get(getBotToken('sales'))).toBe(both.sales)
    expect(app.get(getCoordinatorToken())).not.toBe(coordinator)
    expect(app.get(getCheckpointStoreToken('sales'))).toBe(both.sales.store)
  })

  it('isGlobal: false keeps the tokens to importing modules', async () => {
    @Module({ providers: [Parts] })
    class Elsewhere {}
    await expect(
      initApp({
        imports: [BotmeshModule.forRoot({ provider: new TestProvider(), isGlobal: false }), Elsewhere],
      }),
    ).rejects.toThrow(/dependencies of the Parts/)
  })

  it("a name that no bot has is told in Nest's error, with those that there are", async () => {
    @Injectable()
    class Typo {
      constructor(@InjectBot('salse') readonly sales: Bot) {}
    }
    const bot = (name: string) =>
      BotmeshModule.forRoot({ name, provider: new TestProvider({ account: name }) })
    await expect(initApp({ imports: [bot('sales'), bot('support')], providers: [Typo] })).rejects.toThrow(
      /argument Bot "salse" \(no bot has that name; bots: .*\bsales, .*support\) at index \[0\]/,
    )
  })

  it('the last bot closes the store that it opened, and none that the application has opened itself', async () => {
    class Store extends MemoryStore {
      isOpen = false
      closed = 0
      open(): Promise<void> {
        this.isOpen = true
        return Promise.resolve()
      }
      close(): Promise<void> {
        this.isOpen = false
        this.closed += 1
        return Promise.resolve()
      }
    }
    const [own, theirs] = [new Store(), new Store()]
    await theirs.open()
    for (const store of [own, theirs]) {
      const bot = (name: string) =>
        BotmeshModule.forRoot({ name, provider: new TestProvider({ account: name }), store })
      const { app } = await runApp({ imports: [bot('a'), bot('b')] })
      expect(store.isOpen).toBe(true)
      await app.close()
    }
    expect([own.closed, theirs.closed]).toEqual([1, 0])
  })

  it('bots that share a coordinator: the last one to stop stops it', async () => {
    const coordinator = new MemoryCoordinator({ hub: new MemoryCoordinationHub() })
    const { app } = await runApp({
      imports: ['default', 'b'].map((name) =>
        BotmeshModule.forRoot({
          name,
          provider: new TestProvider({ account: name }),
          coordination: { coordinator },
        }),
      ),
    })
    await app.get<Bot>(getBotToken('b')).stop()
    expect(coordinator.status.status).toBe('live')
    await app.close()
    expect(coordinator.status.status).toBe('stopped')
  })
})

describe('N1: forRootAsync', () => {
  const PROVIDER = Symbol('provider')
  @Module({ providers: [{ provide: PROVIDER, useFactory: () => new TestProvider() }], exports: [PROVIDER] })
  class Transports {}

  @Injectable()
  class Options implements BotmeshOptionsFactory {
    constructor(@Inject(PROVIDER) private readonly provider: Provider) {}
    createBotmeshOptions(): BotmeshOptions {
      return { provider: this.provider }
    }
  }

  it('useFactory with imports and inject, asynchronously', async () => {
    const { app } = await runApp({
      imports: [
        BotmeshModule.forRootAsync({
          imports: [Transports],
          inject: [PROVIDER],
          useFactory: async (provider: Provider) => ({ provider, health: false as const }),
        }),
      ],
    })
    expect(app.get(Bot).provider).toBe(app.get(PROVIDER, { strict: false }))
  })

  it('useClass, and useExisting, also for a named bot', async () => {
    @Module({ imports: [Transports], providers: [Options], exports: [Options] })
    class Configured {}
    const byClass = await runApp({
      imports: [BotmeshModule.forRootAsync({ imports: [Transports], useClass: Options })],
    })
    expect(byClass.app.get(Bot).name).toBe('default')
    await byClass.app.close()
    const byExisting = await runApp({
      imports: [BotmeshModule.forRootAsync({ name: 'b', imports: [Configured], useExisting: Options })],
    })
    expect(byExisting.app.get<Bot>(getBotToken('b')).name).toBe('b')
  })

  it('needs exactly one source, and a name beside the factory', async () => {
    expect(() => BotmeshModule.forRootAsync({})).toThrow('none of useFactory, useClass and useExisting')
    await expect(
      initApp({
        imports: [
          BotmeshModule.forRootAsync({ useFactory: () => ({ provider: new TestProvider(), name: 'x' }) }),
        ],
      }),
    ).rejects.toThrow('the factory names the bot "x"')
  })
})

describe('bad input is named at start', () => {
  const provider = new TestProvider()
  it.each([
    [
      'an unknown option',
      { provider, coordinaton: {} },
      /has no option "coordinaton"; did you mean "coordination"/,
    ],
    [
      'an unknown health option',
      { provider, health: { standbye: 'ready' } },
      /no option "standbye"; did you mean "standby"/,
    ],
    [
      'a wrong standby',
      { provider, health: { standby: 'yes' } },
      /"health.standby" is "yes".*'ready', 'not-ready'/,
    ],
    ['a wrong path', { provider, webhooks: { path: 'a b' } }, /"webhooks.path" is "a b"/],
    ['no provider', {}, /option "provider" is undefined/],
    ['an impossible duration', { provider, drainMs: '10 parsecs' }, /drainMs.*10 parsecs/],
  ])('%s', async (_what, options, message) => {
    // Untyped on purpose: what a JavaScript application could pass.
    const untyped = options as unknown as { provider: TestProvider }
    await expect(initApp({ imports: [BotmeshModule.forRoot(untyped)] })).rejects.toThrow(message)
  })

  it('two bots of one name', async () => {
    const imports = [1, 2].map(() => BotmeshModule.forRoot({ provider: new TestProvider() }))
    await expect(initApp({ imports })).rejects.toThrow('Two bots are called "default"')
  })

  it('a name that cannot be one', () => {
    expect(() => BotmeshModule.forRoot({ provider, name: '*' })).toThrow('Option "name"')
  })
})
