/** `BotmeshModule`: brings one bot into an application; called once per bot (N1). */
import { Inject, Module, Optional, type DynamicModule, type Provider } from '@nestjs/common'
import { ConfigError } from '@botmesh/core'
import { BotRegistry, type RegisteredBot } from './bot-registry.js'
import { BotmeshCoreModule } from './botmesh-core.module.js'
import {
  checkAsyncOptions,
  checkName,
  type BotmeshModuleAsyncOptions,
  type BotmeshModuleOptions,
  type BotmeshOptions,
  type BotmeshOptionsFactory,
} from './options.js'
import { noteName, tokenOf, type BotPart } from './tokens.js'

const OPTIONS = Symbol('botmesh:options')
const REGISTERED = Symbol('botmesh:registered')

@Module({})
export class BotmeshModule {
  /** @internal @throws ConfigError if the module was imported as it is: there is no bot then. */
  constructor(@Optional() @Inject(REGISTERED) registered?: RegisteredBot) {
    if (registered !== undefined) return
    throw new ConfigError(
      'BotmeshModule is imported without options; write BotmeshModule.forRoot({ provider }), or forRootAsync().',
      { option: 'options' },
    )
  }

  /**
   * @throws ConfigError (when the application is created) for unknown options, a missing provider, a name twice.
   */
  static forRoot(options: BotmeshModuleOptions): DynamicModule {
    if (typeof options === 'function') {
      throw new ConfigError(
        'BotmeshModule.forRoot() was given a function; pass it as BotmeshModule.forRootAsync({ useFactory }).',
        { option: 'options' },
      )
    }
    const name = checkName(options?.name)
    return moduleOf(name, options?.isGlobal, [], [{ provide: OPTIONS, useValue: options }])
  }

  /** Like `forRoot`, with options from injected providers. `name` and `isGlobal` are given here, not by the factory. */
  static forRootAsync(options: BotmeshModuleAsyncOptions): DynamicModule {
    checkAsyncOptions(options)
    const name = checkName(options.name)
    return moduleOf(name, options.isGlobal, options.imports ?? [], [
      ...(options.extraProviders ?? []),
      ...sourceOf(options),
    ])
  }
}

function moduleOf(
  name: string,
  isGlobal: boolean | undefined,
  imports: NonNullable<DynamicModule['imports']>,
  source: Provider[],
): DynamicModule {
  noteName(name)
  const providers = PARTS.map(([part, pick]) => ({
    provide: tokenOf(part, name),
    inject: [REGISTERED],
    useFactory: pick,
  }))
  return {
    module: BotmeshModule,
    global: isGlobal ?? true,
    imports: [...imports, BotmeshCoreModule],
    providers: [
      ...source,
      {
        provide: REGISTERED,
        inject: [BotRegistry, OPTIONS],
        useFactory: (registry: BotRegistry, options: BotmeshOptions) => registry.add(options, name),
      },
      ...providers,
    ],
    exports: [BotmeshCoreModule, ...providers.map((one) => one.provide)],
  }
}

const PARTS: [BotPart, (registered: RegisteredBot) => unknown][] = [
  ['bot', (one) => one.bot],
  ['coordinator', (one) => one.coordinator],
  ['turns', (one) => one.coordinator.turns],
  ['elections', (one) => one.coordinator.elections],
  ['checkpoints', (one) => one.store],
]

function sourceOf(options: BotmeshModuleAsyncOptions): Provider[] {
  if (options.useFactory !== undefined) {
    return [{ provide: OPTIONS, inject: options.inject ?? [], useFactory: options.useFactory }]
  }
  const make = (factory: BotmeshOptionsFactory) => {
    if (typeof factory.createBotmeshOptions === 'function') return factory.createBotmeshOptions()
    throw new ConfigError(
      `BotmeshModule.forRootAsync: ${factory.constructor.name} has no method createBotmeshOptions().`,
      { option: options.useClass === undefined ? 'useExisting' : 'useClass' },
    )
  }
  if (options.useExisting !== undefined) {
    return [{ provide: OPTIONS, inject: [options.useExisting], useFactory: make }]
  }
  const { useClass } = options
  if (useClass === undefined) return []
  return [
    { provide: useClass, useClass },
    { provide: OPTIONS, inject: [useClass], useFactory: make },
  ]
}
