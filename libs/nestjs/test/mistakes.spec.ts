/** What newcomers write instead of what is meant: each is told what is wrong and what to write (N1, N2). */
import { describe, expect, it } from '@jest/globals'
import { Injectable, type ModuleMetadata } from '@nestjs/common'
import { ConfigError, MemoryStore } from '@botmesh/core'
import { FakeProvider } from '@botmesh/core/testing'
import {
  BotmeshModule,
  Command,
  Flow,
  Hears,
  LeaderOnly,
  OnMessage,
  Persistent,
  Step,
  type BotmeshModuleAsyncOptions,
  type BotmeshModuleOptions,
} from '../src/index.js'
import { initApp } from './test-app.js'
import { TestProvider } from './test-provider.js'

type Imports = NonNullable<ModuleMetadata['imports']>

/** Options as plain JavaScript lets them through. */
const forRoot = (options?: unknown): Imports => [BotmeshModule.forRoot(options as BotmeshModuleOptions)]
const withProvider = (more: object): Imports => forRoot({ provider: new TestProvider(), ...more })
const forRootAsync = (options?: unknown): Imports => [
  BotmeshModule.forRootAsync(options as BotmeshModuleAsyncOptions),
]
const store = new MemoryStore()

async function refusal(imports: () => Imports): Promise<string> {
  try {
    await initApp({ imports: imports() })
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as ConfigError).message
  }
  throw new Error('It was accepted.')
}

describe('N1: mistakes in forRoot', () => {
  const cases: [string, () => Imports, string | RegExp][] = [
    ['the module as it is', () => [BotmeshModule], 'write BotmeshModule.forRoot({ provider })'],
    ['no options', () => forRoot(), 'the options are undefined; accepted: an object with a provider'],
    ['no provider', () => forRoot({}), 'option "provider" is undefined; accepted: a provider, such as new'],
    ['a class', () => forRoot({ provider: TestProvider }), 'is the class TestProvider;'],
    ['an object', () => forRoot({ provider: { token: 'x' } }), 'an object that lacks id, start, stop, send'],
    ['a list', () => forRoot({ provider: [] }), 'several bots are several calls of forRoot'],
    ['providers', () => forRoot({ providers: [] }), /"providers": a bot has one transport, as provider/],
    ['a function', () => forRoot(() => ({})), 'pass it as BotmeshModule.forRootAsync({ useFactory })'],
    ['useFactory', () => forRoot({ useFactory: () => ({}) }), 'an option of BotmeshModule.forRootAsync()'],
    ['leaseMs', () => withProvider({ leaseMs: '5s' }), 'store.coordinator({ leaseMs })'],
    [
      'a coordinator',
      () => withProvider({ coordinator: store.coordinator() }),
      'coordination: { coordinator }',
    ],
    ['coordination', () => withProvider({ coordination: store.coordinator() }), 'is the coordinator itself;'],
    ['a store as coordination', () => withProvider({ coordination: store }), '"coordination" is the store;'],
    [
      'a store as coordinator',
      () => withProvider({ coordination: { coordinator: store } }),
      '"coordination.coordinator" is the store; accepted: coordination: { coordinator: store.coordinator() }',
    ],
    [
      'leaseMs in coordination',
      () => withProvider({ coordination: { leaseMs: '15s' } }),
      /coordination has no option "leaseMs": it belongs to the coordinator/,
    ],
    ['only turnWaitMs', () => withProvider({ coordination: { turnWaitMs: 1 } }), 'without a coordinator'],
    ['a store address', () => withProvider({ store: 'redis://x' }), 'such as new MemoryStore() or new Redis'],
    [
      'health',
      () => withProvider({ health: true }),
      '"health" is true; accepted: false, or an object such as',
    ],
    ['health as a path', () => withProvider({ health: '/up' }), '"health" is "/up"; accepted: false, or an'],
    ['webhooks', () => withProvider({ webhooks: '/hook' }), "such as { path: '/webhooks/whatsapp' }"],
    [
      'a webhook address',
      () => withProvider({ webhooks: { path: 'https://shop.example/hook' } }),
      'without host, parameters or wildcards',
    ],
    ['a pattern', () => withProvider({ webhooks: { path: '/hooks/:id' } }), 'without host, parameters or'],
    ['isGlobal', () => withProvider({ isGlobal: 'yes' }), '"isGlobal" is "yes"; accepted: true or false.'],
    ['a near name', () => withProvider({ webhook: {} }), 'has no option "webhook"; did you mean "webhooks"?'],
    [
      'an unknown name',
      () => withProvider({ zzzzzzzz: 1 }),
      'has no option "zzzzzzzz". Known: name, isGlobal',
    ],
    [
      'two bots of one account on one coordinator',
      () => {
        const coordination = { coordinator: new MemoryStore().coordinator() }
        return [
          ...forRoot({ provider: new FakeProvider({ id: 'fake:shop' }), coordination }),
          ...forRoot({ provider: new FakeProvider({ id: 'fake:shop' }), coordination, name: 'sales' }),
        ]
      },
      'are both fake:shop on one coordinator',
    ],
    [
      'one provider for two bots',
      () => {
        const provider = new TestProvider()
        return [...forRoot({ provider }), ...forRoot({ provider, name: 'sales' })]
      },
      'The bots "default" and "sales" have one provider object',
    ],
  ]
  it.each(cases)('%s: says what to write instead', async (_what, imports, message) => {
    expect(await refusal(imports)).toEqual(
      typeof message === 'string' ? expect.stringContaining(message) : expect.stringMatching(message),
    )
  })
})

describe('N1: mistakes in forRootAsync', () => {
  const provider = new TestProvider()
  class Nothing {}
  const cases: [string, () => Imports, string][] = [
    ['no options', () => forRootAsync(), 'was given undefined; accepted: { useFactory }'],
    ['the options themselves', () => forRootAsync({ provider }), '"provider": return it from useFactory'],
    [
      'options as the factory',
      () => forRootAsync({ useFactory: { provider } }),
      '"useFactory" is an object;',
    ],
    ['a factory without return', () => forRootAsync({ useFactory: () => {} }), 'the options are undefined;'],
    [
      'a class that makes none',
      () => forRootAsync({ useClass: Nothing }),
      'Nothing has no method createBotmesh',
    ],
    ['inject', () => forRootAsync({ inject: Nothing, useFactory: () => ({}) }), '"inject" is a function;'],
    ['imports', () => forRootAsync({ imports: Nothing, useFactory: () => ({}) }), '"imports" is a function;'],
  ]
  it.each(cases)('%s: says what to write instead', async (_what, imports, message) => {
    expect(await refusal(imports)).toContain(message)
  })
})

describe('N2: decorators without their parentheses, or without a name', () => {
  /** As a decorator is called that stands alone. */
  const bare = (decorator: unknown) => decorator as MethodDecorator & ClassDecorator
  const cases: [string, () => unknown, string][] = [
    [
      '@Flow',
      () => {
        @bare(Flow)
        class Order {}
        return Order
      },
      "Class Order: @Flow stands without its parentheses; write @Flow('order').",
    ],
    [
      '@Persistent',
      () => {
        @bare(Persistent)
        class Order {}
        return Order
      },
      'Class Order: @Persistent stands without its parentheses; write @Persistent().',
    ],
    ...(
      [
        ['@Step', Step, '@Step()'],
        ['@OnMessage', OnMessage, '@OnMessage()'],
        ['@Hears', Hears, "@Hears('hello')"],
        ['@Command', Command, "@Command('cancel')"],
        ['@LeaderOnly', LeaderOnly, "@LeaderOnly('report')"],
      ] as const
    ).map(([name, decorator, example]): [string, () => unknown, string] => [
      name,
      () => {
        @Injectable()
        class Order {
          @bare(decorator)
          async size() {}
        }
        return Order
      },
      `Class Order: ${name} stands without its parentheses; write ${example}.`,
    ]),
    [
      'a flow without a name',
      () => Flow(undefined as never),
      '@Flow() has undefined for a name; write @Flow',
    ],
    ['a flow by an object', () => Flow({ name: 'order' } as never), '@Flow() has an object for a name;'],
  ]
  it.each(cases)('%s', (_what, decorate, message) => {
    expect(decorate).toThrow(message)
  })
})
