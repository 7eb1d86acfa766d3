/**
 * What newcomers write instead of what is meant, told in their terms. Each check is for one mistake that the types
 * would show, and that plain JavaScript, a cast or a wrong example lets through.
 */
import { ConfigError, describeValue } from '@botmesh/core'

/** Options that exist, but not where they were given: name → where they belong. */
const ELSEWHERE: Record<string, string> = {
  coordinator: 'give it as coordination: { coordinator }',
  leaseMs: 'it belongs to the coordinator: coordination: { coordinator: store.coordinator({ leaseMs }) }',
  replicaId: 'it belongs to the coordinator: coordination: { coordinator: store.coordinator({ replicaId }) }',
  turnWaitMs: 'give it inside coordination, beside the coordinator',
  settleMs: 'give it inside coordination, beside the coordinator',
  handover: 'give it inside coordination, beside the coordinator',
  providers:
    'a bot has one transport, as provider; for several call forRoot once for each, every one with a name',
  useFactory: 'that is an option of BotmeshModule.forRootAsync()',
  useClass: 'that is an option of BotmeshModule.forRootAsync()',
  useExisting: 'that is an option of BotmeshModule.forRootAsync()',
  inject: 'that is an option of BotmeshModule.forRootAsync()',
  imports: 'that is an option of BotmeshModule.forRootAsync(), or of your own module',
  standby: "give it as health: { standby: 'ready' }",
  maxBytes: 'give it as webhooks: { maxBytes }',
  url: 'it belongs to the store: new RedisStore({ url })',
  prefix: 'it belongs to the store: new RedisStore({ url, prefix })',
}

/** @throws ConfigError for an option that belongs elsewhere. */
export function refuseMisplaced(owner: string, options: object, known: readonly string[]): void {
  for (const name of Object.keys(options)) {
    const place = Object.hasOwn(ELSEWHERE, name) ? ELSEWHERE[name] : undefined
    if (place === undefined || known.includes(name)) continue
    throw new ConfigError(`${owner} has no option "${name}": ${place}.`, { option: name })
  }
}

/** @throws ConfigError unless `value` has what a transport must have. */
export function checkProvider(owner: string, value: unknown): void {
  const refuse = (what: string, hint = '') => {
    throw new ConfigError(
      `${owner}: option "provider" is ${what}; accepted: a provider, such as new WebchatProvider()${hint}.`,
      { option: 'provider', accepted: 'a provider' },
    )
  }
  if (typeof value === 'function') {
    const name = value.name === '' ? 'the class' : value.name
    return refuse(
      isClass(value) ? `the class ${name}` : 'a function',
      isClass(value) ? `, made with new` : '',
    )
  }
  if (Array.isArray(value)) {
    return refuse('an array', '; several bots are several calls of forRoot, every one with a name')
  }
  if (typeof value !== 'object' || value === null) return refuse(describeValue(value))
  const lacks = ['id', 'start', 'stop', 'send'].filter((one) => Reflect.get(value, one) === undefined)
  if (lacks.length > 0) refuse(`an object that lacks ${lacks.join(', ')}`)
}

/** @throws ConfigError for what is taken for `coordination` or its coordinator. */
export function checkCoordination(owner: string, value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  const refuse = (option: string, is: string) => {
    throw new ConfigError(
      `${owner}: option "${option}" is ${is}; accepted: coordination: { coordinator: store.coordinator() }.`,
      { option, accepted: '{ coordinator, … }' },
    )
  }
  if ('turns' in value && 'elections' in value) return refuse('coordination', 'the coordinator itself')
  if ('getCheckpoint' in value) return refuse('coordination', 'the store')
  if (!('coordinator' in value)) {
    refuseMisplaced(`${owner} coordination`, value, ['turnWaitMs', 'settleMs', 'handover'])
    return refuse('coordination', 'an object without a coordinator')
  }
  const { coordinator } = value
  const isStore = typeof coordinator === 'object' && coordinator !== null && 'getCheckpoint' in coordinator
  if (isStore) refuse('coordination.coordinator', 'the store')
}

/** @throws ConfigError unless `value` is absent, or true or false. */
export function checkFlag(owner: string, option: string, value: unknown): void {
  if (value === undefined || typeof value === 'boolean') return
  throw new ConfigError(`${owner}: option "${option}" is ${describeValue(value)}; accepted: true or false.`, {
    ...{ option, value, accepted: 'true or false' },
  })
}

/** @throws ConfigError unless `value` is absent, false, or an object. @param example of an object. */
export function checkGroup(owner: string, option: string, value: unknown, example: string): void {
  if (value === undefined || value === false) return
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return
  throw new ConfigError(
    `${owner}: option "${option}" is ${describeValue(value)}; accepted: false, or an object such as ${example}.`,
    { option, accepted: `false, or ${example}` },
  )
}

/**
 * `@Step` without its parentheses is called with what it decorates.
 * @throws ConfigError that shows them.
 */
export function refuseBareUse(decorator: string, example: string, first: unknown): void {
  const type = typeof first === 'function' ? first : classOfPrototype(first)
  if (type === undefined) return
  throw new ConfigError(
    `Class ${type.name}: @${decorator} stands without its parentheses; write ${example}.`,
    {
      option: `@${decorator}`,
    },
  )
}

function isClass(value: object): boolean {
  return /^class\b/.test(Function.prototype.toString.call(value))
}

function classOfPrototype(value: unknown): { name: string } | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, 'constructor')) return undefined
  return value.constructor
}
