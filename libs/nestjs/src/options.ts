/** Options of the Nest module, and their checks. Everything that is not named here is the bot's own (`BotConfig`). */
import type {
  ForwardReference,
  DynamicModule,
  InjectionToken,
  OptionalFactoryDependency,
  Provider,
  Type,
} from '@nestjs/common'
import { ConfigError, describeValue, refuseUnknownOptions, requireOneOf, type BotConfig } from '@botmesh/core'
import { checkCoordination, checkFlag, checkGroup, checkProvider, refuseMisplaced } from './mistakes.js'
import { DEFAULT_BOT } from './tokens.js'

export interface HealthOptions {
  /** Whether a healthy standby counts as ready (N4). Default `'not-ready'`: 503 until `bot.ready` resolves. */
  standby?: 'ready' | 'not-ready'
  /** Where the report is; `<path>/ready` and `<path>/live` follow it. Default `'/health'`. */
  path?: string
}

export interface WebhookOptions {
  /** Exact path of this bot's webhook, whatever the global prefix. Default `/webhooks/<kind>/<account>` of the
   * provider's id. */
  path?: string
  /** Largest body accepted, in bytes; a larger one is answered 413. Default 3 MiB, the most that a platform sends. */
  maxBytes?: number
}

/** What the module needs besides the bot's own configuration. */
export interface BotmeshModuleExtras {
  /** Ready-made health routes; false: none for this bot. */
  health?: HealthOptions | false
  /** Webhook and page routes of the provider; false: none, call `bot.handleWebhook` yourself. */
  webhooks?: WebhookOptions | false
  /** Warn at start if Nest's shutdown hooks are off (Z11). Default true. */
  shutdownHooksWarning?: boolean
}

/** What a factory of `forRootAsync` resolves to. */
export interface BotmeshOptions extends Omit<BotConfig, 'name'>, BotmeshModuleExtras {}

export interface BotmeshModuleOptions extends BotmeshOptions {
  /** Names the bot; the class tokens mean the one called `'default'`, which is the default. */
  name?: string
  /** Whether the tokens can be injected in every module. Default true. */
  isGlobal?: boolean
}

/** A class that makes the options, for `useClass` and `useExisting`. */
export interface BotmeshOptionsFactory {
  createBotmeshOptions(): BotmeshOptions | Promise<BotmeshOptions>
}

/** Exactly one of `useFactory`, `useClass` and `useExisting`. */
export interface BotmeshModuleAsyncOptions {
  name?: string
  isGlobal?: boolean
  imports?: (Type | DynamicModule | Promise<DynamicModule> | ForwardReference)[]
  inject?: (InjectionToken | OptionalFactoryDependency)[]
  // Nest's own factories take whatever `inject` names; there is no type that says so.
  // oxlint-disable-next-line no-explicit-any
  useFactory?: (...injected: any[]) => BotmeshOptions | Promise<BotmeshOptions>
  useClass?: Type<BotmeshOptionsFactory>
  useExisting?: InjectionToken
  /** Providers that `useClass` or `inject` need and no import brings. */
  extraProviders?: Provider[]
}

export interface CheckedOptions {
  name: string
  config: BotConfig
  health: { standby: 'ready' | 'not-ready'; path: string } | null
  webhooks: { path: string; maxBytes: number } | null
  shutdownHooksWarning: boolean
}

/** Complete by its type: a new option of the bot that is missing here fails to compile. */
const KNOWN: Record<keyof BotmeshModuleOptions, true> = {
  name: true,
  isGlobal: true,
  health: true,
  webhooks: true,
  shutdownHooksWarning: true,
  provider: true,
  store: true,
  coordination: true,
  durability: true,
  scheduler: true,
  conversation: true,
  userState: true,
  locale: true,
  texts: true,
  logger: true,
  drainMs: true,
  maxWaitingPerChat: true,
  maxWaiting: true,
  clock: true,
  random: true,
}

const ASYNC_KNOWN: Record<keyof BotmeshModuleAsyncOptions, true> = {
  name: true,
  isGlobal: true,
  imports: true,
  inject: true,
  useFactory: true,
  useClass: true,
  useExisting: true,
  extraProviders: true,
}

const DEFAULT_MAX_BYTES = 3 * 1024 * 1024

/**
 * @param name what the bot was called in `forRoot` or `forRootAsync`.
 * @throws ConfigError that names the option, the value given and what is accepted.
 */
export function checkOptions(options: BotmeshModuleOptions, name: string): CheckedOptions {
  const owner = `BotmeshModule (bot "${name}")`
  if (typeof options !== 'object' || options === null) {
    throw new ConfigError(
      `${owner}: the options are ${describeValue(options)}; accepted: an object with a provider.`,
      {
        option: 'options',
      },
    )
  }
  refuseMisplaced(owner, options, Object.keys(KNOWN))
  refuseUnknownOptions(owner, options, Object.keys(KNOWN))
  const { health, webhooks, shutdownHooksWarning, isGlobal: _isGlobal, name: given, ...config } = options
  if (given !== undefined && given !== name) {
    throw new ConfigError(
      `${owner}: the factory names the bot "${given}"; pass the name beside useFactory, it decides the tokens.`,
      { option: 'name', value: given },
    )
  }
  checkProvider(owner, config.provider)
  checkCoordination(owner, config.coordination)
  checkFlag(owner, 'isGlobal', _isGlobal)
  checkFlag(owner, 'shutdownHooksWarning', shutdownHooksWarning)
  checkGroup(owner, 'health', health, "{ path: '/health' }")
  checkGroup(owner, 'webhooks', webhooks, "{ path: '/webhooks/whatsapp' }")
  return {
    name,
    config: { ...config, name },
    health: checkHealth(owner, health),
    webhooks: checkWebhooks(owner, webhooks, config.provider.id),
    shutdownHooksWarning: shutdownHooksWarning ?? true,
  }
}

/** @throws ConfigError unless there is exactly one source of options. */
export function checkAsyncOptions(options: BotmeshModuleAsyncOptions): void {
  const owner = 'BotmeshModule.forRootAsync'
  if (typeof options !== 'object' || options === null) {
    throw new ConfigError(
      `${owner}() was given ${describeValue(options)}; accepted: { useFactory }, { useClass } or { useExisting }.`,
      { option: 'options' },
    )
  }
  for (const name of Object.keys(KNOWN).filter((one) => one in options && !(one in ASYNC_KNOWN))) {
    throw new ConfigError(
      `${owner} has no option "${name}": return it from useFactory, or give it to BotmeshModule.forRoot().`,
      { option: name },
    )
  }
  refuseUnknownOptions(owner, options, Object.keys(ASYNC_KNOWN))
  checkFlag(owner, 'isGlobal', options.isGlobal)
  checkKinds(owner, options)
  const sources = (['useFactory', 'useClass', 'useExisting'] as const).filter(
    (one) => options[one] !== undefined,
  )
  if (sources.length === 1) return
  throw new ConfigError(
    `BotmeshModule.forRootAsync has ${sources.length === 0 ? 'none' : sources.join(' and ')} of useFactory, useClass and useExisting; accepted: exactly one.`,
    { option: 'useFactory' },
  )
}

function checkKinds(owner: string, options: BotmeshModuleAsyncOptions): void {
  const refuse = (option: string, value: unknown, accepted: string) => {
    throw new ConfigError(`${owner}: option "${option}" is ${describeValue(value)}; accepted: ${accepted}.`, {
      ...{ option, accepted },
    })
  }
  for (const option of ['useFactory', 'useClass'] as const) {
    const value: unknown = options[option]
    if (value !== undefined && typeof value !== 'function') {
      refuse(option, value, option === 'useFactory' ? 'a function that returns the options' : 'a class')
    }
  }
  for (const option of ['imports', 'inject', 'extraProviders'] as const) {
    const value: unknown = options[option]
    if (value !== undefined && !Array.isArray(value)) refuse(option, value, 'an array')
  }
}

/** @throws ConfigError */
export function checkName(name: unknown): string {
  if (name === undefined) return DEFAULT_BOT
  if (typeof name === 'string' && name !== '' && name !== '*') return name
  throw new ConfigError(
    `Option "name" of BotmeshModule is ${describeValue(name)}; accepted: a non-empty string other than '*'.`,
    { option: 'name', value: name },
  )
}

function checkHealth(owner: string, value: HealthOptions | false | undefined): CheckedOptions['health'] {
  if (value === false) return null
  const health = value ?? {}
  refuseUnknownOptions(`${owner} health`, health, ['standby', 'path'])
  return {
    standby: requireOneOf('health.standby', health.standby ?? 'not-ready', ['ready', 'not-ready']),
    path: checkPath('health.path', health.path ?? '/health'),
  }
}

function checkWebhooks(
  owner: string,
  value: WebhookOptions | false | undefined,
  providerId: string,
): CheckedOptions['webhooks'] {
  if (value === false) return null
  const webhooks = value ?? {}
  refuseUnknownOptions(`${owner} webhooks`, webhooks, ['path', 'maxBytes'])
  const maxBytes = webhooks.maxBytes ?? DEFAULT_MAX_BYTES
  if (!Number.isInteger(maxBytes) || maxBytes < 1) {
    const accepted = 'a whole number of bytes, at least 1'
    throw new ConfigError(
      `Option "webhooks.maxBytes" is ${describeValue(maxBytes)}; accepted: ${accepted}.`,
      {
        option: 'webhooks.maxBytes',
        value: maxBytes,
        accepted,
      },
    )
  }
  const path = webhooks.path ?? `/webhooks/${providerId.split(':').map(encodeURIComponent).join('/')}`
  return { path: checkPath('webhooks.path', path), maxBytes }
}

function checkPath(option: string, value: unknown): string {
  const accepted = "a path such as '/webhooks/whatsapp', without host, parameters or wildcards"
  if (typeof value !== 'string' || !/^\/?[^\s?#*]+$/.test(value) || /:\/\/|\/:/.test(value)) {
    throw new ConfigError(`Option "${option}" is ${describeValue(value)}; accepted: ${accepted}.`, {
      option,
      value,
      accepted,
    })
  }
  const path = value.replace(/\/+$/, '')
  return path.startsWith('/') ? path : `/${path}`
}
