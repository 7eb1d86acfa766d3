/** Checks a `BotConfig` at construction: everything that can never work is refused here, by name (B2, C1, D, H). */
import type { Coordinator } from '../contracts/coordinator.js'
import { ConfigError } from '../contracts/errors.js'
import type { Clock, Random } from '../contracts/clock.js'
import type { Logger } from '../contracts/logger.js'
import type { Provider } from '../contracts/provider.js'
import type { Store } from '../contracts/store.js'
import { describeValue, parseDuration } from '../kernel/duration.js'
import { refuseUnknownOptions, requireOneOf, requireText } from '../kernel/options.js'
import type { ConversationOptions } from '../conversation/port.js'
import { isStateStore } from '../runtime/chat-access.js'
import { systemClock, systemRandom } from '../runtime/system-clock.js'
import { resolveScheduler, type ResolvedScheduler } from '../scheduler/options.js'
import type { BotConfig, CoordinationOptions, DurabilityOptions } from './config.js'
import { consoleLogger } from './console-logger.js'
import type { Texts } from './texts.js'

export interface ResolvedOptions {
  name: string
  provider: Provider
  store: Store
  coordinator: Coordinator | null
  turnWaitMs: number
  /** Null without coordination. */
  settleMs: number | null
  exclusive: boolean
  providerDownMs: number
  journal: boolean
  outbox: boolean
  maxAttempts: number
  retryMs: number
  maxRetryMs: number
  scheduler: ResolvedScheduler | null
  conversation: ConversationOptions
  locale: string
  texts: Texts
  userState: 'auto' | 'always'
  logger: Logger
  drainMs: number
  maxWaitingPerChat: number
  maxWaiting: number
  clock: Clock
  random: Random
}

const KNOWN = [
  'provider',
  'store',
  'coordination',
  'durability',
  'scheduler',
  'conversation',
  'name',
  'locale',
  'texts',
  'logger',
  'userState',
  'drainMs',
  'maxWaitingPerChat',
  'maxWaiting',
  'clock',
  'random',
]
const DEFAULT_TTL_MS = 5 * 60_000
/** How long an ephemeral checkpoint outlives the timeout of its wait: one lease until a sweeper may act, a third until
 * it looks, the rest for waiting (ADR 8). */
const GRACE_LEASES = 3

/** @param makeStore makes the store of a bot that was given none. @throws ConfigError */
export function resolveOptions(config: BotConfig, makeStore: () => Store): ResolvedOptions {
  requireObject('config', config)
  refuseUnknownOptions('Bot', config, KNOWN)
  const provider = checkProvider(config.provider)
  const store = config.store === undefined ? makeStore() : checkStore(config.store)
  const timeoutMs = conversationTimeout(config)
  const coordination = checkCoordination(config.coordination)
  if (config.logger !== undefined) requireMethods('logger', config.logger, ['debug', 'info', 'warn', 'error'])
  if (config.clock !== undefined) requireMethods('clock', config.clock, ['now', 'monotonic', 'setTimeout'])
  if (config.random !== undefined) requireMethods('random', config.random, ['uuid', 'next'])
  return {
    name: config.name === undefined ? 'default' : requireText('name', config.name),
    provider,
    store,
    ...resolveCoordination(coordination, provider),
    ...resolveDurability(config.durability, store),
    scheduler: resolveScheduler(config.scheduler, {
      coordinator: coordination?.coordinator ?? null,
      store,
      providerId: provider.id,
    }),
    conversation: resolveConversation(coordination, timeoutMs),
    locale: config.locale === undefined ? 'en' : requireText('locale', config.locale),
    texts: checkTexts(config.texts),
    userState: requireOneOf('userState', config.userState ?? 'auto', ['auto', 'always']),
    logger: config.logger ?? consoleLogger,
    drainMs: parseDuration('drainMs', config.drainMs ?? '10s'),
    maxWaitingPerChat: atLeastOne('maxWaitingPerChat', config.maxWaitingPerChat ?? 1000),
    maxWaiting: atLeastOne('maxWaiting', config.maxWaiting ?? 20_000),
    clock: config.clock ?? systemClock,
    random: config.random ?? systemRandom,
  }
}

function checkProvider(provider: unknown): Provider {
  requireObject('provider', provider, 'a provider, such as new TelegramProvider({ … })')
  const candidate = provider as Partial<Provider>
  requireMethods('provider', candidate, ['start', 'stop', 'send'])
  const accepted = "'kind:account', the same on every replica"
  const id = requireText('provider.id', candidate.id, accepted)
  if (!/^[^:]+:.+$/.test(id)) throw refuse('provider.id', id, accepted)
  return candidate as Provider
}

function checkStore(store: unknown): Store {
  requireObject('store', store, 'a store, such as new MemoryStore() or new RedisStore({ url })')
  const methods = ['getCheckpoint', 'setCheckpoint', 'clearCheckpoint', 'getUser', 'setUserIf'] as const
  return requireMethods('store', store as Store, methods)
}

function checkTexts(texts: BotConfig['texts']): Texts {
  if (texts === undefined) return {}
  requireObject('texts', texts, 'texts by language and id')
  for (const [language, byId] of Object.entries(texts)) {
    requireObject(`texts.${language}`, byId, 'texts by id')
    for (const [id, text] of Object.entries(byId)) {
      if (typeof text !== 'string') throw refuse(`texts.${language}["${id}"]`, text, 'a string')
    }
  }
  return texts
}

function checkCoordination(coordination: CoordinationOptions | undefined): CoordinationOptions | null {
  if (coordination === undefined) return null
  requireObject('coordination', coordination, '{ coordinator, … }')
  refuseUnknownOptions('coordination', coordination, [
    'coordinator',
    'turnWaitMs',
    'settleMs',
    'providerSession',
    'providerDownMs',
    'handover',
  ])
  requireObject(
    'coordination.coordinator',
    coordination.coordinator,
    'a coordinator, such as store.coordinator()',
  )
  const { coordinator } = coordination
  requireMethods('coordination.coordinator', coordinator, ['start', 'stop', 'tryLead', 'onLost'])
  requireMethods('coordination.coordinator.turns', coordinator.turns, ['take'])
  requireMethods('coordination.coordinator.elections', coordinator.elections, ['campaign'])
  return coordination
}

function resolveCoordination(coordination: CoordinationOptions | null, provider: Provider) {
  const session = requireOneOf('coordination.providerSession', coordination?.providerSession ?? 'auto', [
    'auto',
    'leader',
    'shared',
  ])
  const declared = provider.capabilities?.exclusiveSession === true
  const duration = (name: 'turnWaitMs' | 'settleMs' | 'providerDownMs', fallback: '2m' | '1m') =>
    parseDuration(`coordination.${name}`, coordination?.[name] ?? fallback, { minMs: 1 })
  return {
    coordinator: coordination?.coordinator ?? null,
    turnWaitMs: duration('turnWaitMs', '2m'),
    settleMs: coordination === null ? null : duration('settleMs', '1m'),
    providerDownMs: duration('providerDownMs', '1m'),
    exclusive: coordination !== null && (session === 'leader' || (session === 'auto' && declared)),
  }
}

function resolveDurability(durability: DurabilityOptions | boolean | undefined, store: Store) {
  const given = durability === true ? {} : durability === false ? undefined : durability
  if (given !== undefined) {
    requireObject('durability', given, 'true, or { journal, outbox, maxAttempts, retryMs, maxRetryMs }')
    refuseUnknownOptions('durability', given, ['journal', 'outbox', 'maxAttempts', 'retryMs', 'maxRetryMs'])
    for (const name of ['journal', 'outbox'] as const) {
      if (typeof (given[name] ?? true) !== 'boolean')
        throw refuse(`durability.${name}`, given[name], 'true or false')
    }
    if (given.journal === false && given.outbox === true) {
      throw refuse('durability.outbox', true, 'false without the journal, whose records name the sends')
    }
  }
  const journal = given !== undefined && given.journal !== false
  const outbox = given !== undefined && given.outbox !== false
  if (journal && (store.journal === undefined || !isStateStore(store))) throw cannotKeep(store, 'journal')
  if (outbox && (store.outbox === undefined || !isStateStore(store))) throw cannotKeep(store, 'outbox')
  const retryMs = parseDuration('durability.retryMs', given?.retryMs ?? '1s', { minMs: 1 })
  return {
    journal,
    outbox: outbox && journal,
    maxAttempts: atLeastOne('durability.maxAttempts', given?.maxAttempts ?? 5),
    retryMs,
    maxRetryMs: parseDuration('durability.maxRetryMs', given?.maxRetryMs ?? Math.max(60_000, retryMs), {
      minMs: retryMs,
    }),
  }
}

function resolveConversation(
  coordination: CoordinationOptions | null,
  timeoutMs: number | null,
): ConversationOptions {
  const handover = coordination?.handover
  if (handover !== undefined) {
    requireObject('coordination.handover', handover)
    refuseUnknownOptions('coordination.handover', handover, [
      'flows',
      'fallback',
      'notifyMessage',
      'ttl',
      'maxAnswerBytes',
    ])
    if (handover.flows !== undefined) requireOneOf('coordination.handover.flows', handover.flows, ['forward'])
    if (handover.fallback !== undefined && typeof handover.fallback !== 'function') {
      requireOneOf('coordination.handover.fallback', handover.fallback, ['notify', 'restart', 'drop'])
    }
  }
  return {
    timeoutMs,
    forward: handover?.flows === 'forward',
    fallback: (handover?.fallback ?? 'drop') as ConversationOptions['fallback'],
    notifyMessage: handover?.notifyMessage ?? null,
    ttlMs: handoverTtl(handover?.ttl, timeoutMs),
    graceMs: GRACE_LEASES * (coordination?.coordinator.leaseMs ?? 0),
    maxAnswerBytes: atLeastOne('coordination.handover.maxAnswerBytes', handover?.maxAnswerBytes ?? 16_384),
    markers: handover !== undefined,
  }
}

/** H1: what is handed over may not expire before the wait that it belongs to. */
function handoverTtl(ttl: unknown, timeoutMs: number | null): number {
  if (ttl === undefined) return timeoutMs ?? DEFAULT_TTL_MS
  const ttlMs = parseDuration('coordination.handover.ttl', ttl, { minMs: 1 })
  if (timeoutMs !== null && ttlMs < timeoutMs) {
    throw new ConfigError(
      `Option "coordination.handover.ttl" is ${describeValue(ttl)}, less than conversation.timeout (${timeoutMs} ms): a conversation could not be handed over while it still waits.`,
      { option: 'coordination.handover.ttl', value: ttl, accepted: `at least ${timeoutMs} ms` },
    )
  }
  return ttlMs
}

function conversationTimeout(config: BotConfig): number | null {
  if (config.conversation === undefined) return null
  requireObject('conversation', config.conversation, '{ timeout }')
  refuseUnknownOptions('conversation', config.conversation, ['timeout'])
  const { timeout } = config.conversation
  return timeout === undefined ? null : parseDuration('conversation.timeout', timeout, { minMs: 1 })
}

function atLeastOne(option: string, value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return value
  throw refuse(option, value, 'a whole number from 1')
}

function requireObject(option: string, value: unknown, accepted = 'an object'): void {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return
  // Not the text itself: an address in place of a store may carry a password.
  const shown = typeof value === 'string' ? 'a string' : describeValue(value)
  throw new ConfigError(`Option "${option}" is ${shown}; accepted: ${accepted}.`, { option, accepted })
}

function requireMethods<T>(option: string, value: T, methods: readonly (string & keyof T)[]): T {
  for (const method of methods) {
    if (typeof (value as T | undefined)?.[method] === 'function') continue
    throw new ConfigError(`Option "${option}" lacks "${method}": it does not fulfil its contract.`, {
      option,
    })
  }
  return value
}

function refuse(option: string, value: unknown, accepted: string): ConfigError {
  const message = `Option "${option}" is ${describeValue(value)}; accepted: ${accepted}.`
  return new ConfigError(message, { option, value, accepted })
}

function cannotKeep(store: Store, what: 'journal' | 'outbox'): ConfigError {
  return new ConfigError(
    `Option "durability.${what}" needs a store with a ${what} and fenced state; "${store.kind}" has none. Use RedisStore or another built-in store, or leave durability out.`,
    { option: `durability.${what}` },
  )
}
