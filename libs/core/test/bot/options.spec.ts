/** What a bot refuses at construction, and what it warns of at start (B2, C1, H1, S1, K2). */
import { describe, expect, it } from '@jest/globals'
import { Bot, ConfigError, MemoryStore, type BotConfig, type Logger, type Store } from '../../src/index.js'
import { resolveOptions } from '../../src/bot/options.js'
import { FakeProvider, MemoryCoordinationHub, MemoryCoordinator } from '../../src/testing/index.js'

const provider = new FakeProvider()
const coordinator = new MemoryCoordinator({ hub: new MemoryCoordinationHub() })

function refusal(config: unknown): ConfigError {
  try {
    const bot = new Bot(config as BotConfig)
    throw new Error(`${bot.name} was accepted`)
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
}

describe('options that can never work', () => {
  const cases: [string, unknown, RegExp][] = [
    [
      'an unknown option, with the near name',
      { provider, sotre: 1 },
      /no option "sotre".*did you mean "store"/,
    ],
    [
      'an unknown option of coordination',
      { provider, coordination: { coordinator, turnWait: 1 } },
      /"turnWait".*did you mean "turnWaitMs"/,
    ],
    ['no provider', {}, /"provider" is undefined/],
    ['no coordinator', { provider, coordination: {} }, /"coordination.coordinator"/],
    [
      'an impossible settleMs',
      { provider, coordination: { coordinator, settleMs: '-1s' } },
      /"coordination.settleMs" is "-1s"; accepted: milliseconds/,
    ],
    [
      'an impossible turnWaitMs',
      { provider, coordination: { coordinator, turnWaitMs: 'soon' } },
      /"coordination.turnWaitMs" is "soon"/,
    ],
    [
      'a ttl below conversation.timeout',
      { provider, conversation: { timeout: '10m' }, coordination: { coordinator, handover: { ttl: '5m' } } },
      /ttl" is "5m", less than conversation.timeout \(600000 ms\)/,
    ],
    [
      'an unknown fallback',
      { provider, coordination: { coordinator, handover: { fallback: 'retry' } } },
      /'notify', 'restart', 'drop'/,
    ],
    [
      'an unknown providerSession',
      { provider, coordination: { coordinator, providerSession: 'one' } },
      /'auto'/,
    ],
    [
      'durability on a plain store',
      { provider, store: plainStore(), durability: true },
      /"durability.journal" needs/,
    ],
    ['a limit of nothing', { provider, maxWaitingPerChat: 0 }, /whole number from 1/],
    ['a store that is none', { provider, store: {} }, /lacks "getCheckpoint"/],
    [
      'an address in place of a store',
      { provider, store: 'redis://:secret@h' },
      /^Option "store" is a string;/,
    ],
    ['a logger without a method', { provider, logger: { info() {} } }, /"logger" lacks "debug"/],
    ['a clock that is none', { provider, clock: Date }, /"clock" lacks "monotonic"/],
    [
      'a text that is none',
      { provider, texts: { es: { a: 1 } } },
      /"texts.es\["a"\]" is 1; accepted: a string/,
    ],
    [
      'a coordinator that is none',
      { provider, coordination: { coordinator: { turns: coordinator.turns } } },
      /"coordination.coordinator" lacks "start"/,
    ],
    [
      'a journal that is no choice',
      { provider, durability: { journal: 'yes' } },
      /"durability.journal" is "yes"/,
    ],
    [
      'an outbox without the journal',
      { provider, durability: { journal: false, outbox: true } },
      /"durability.outbox" is true; accepted: false without the journal/,
    ],
  ]
  it.each(cases)('%s', (_what, config, message) => {
    expect(refusal(config).message).toMatch(message)
  })

  it('flows are checked at start: without steps, two of one name', async () => {
    const empty = new Bot({ provider: new FakeProvider() })
    empty.flow('order')
    await expect(empty.start()).rejects.toThrow(/"order" has no steps/)
    const twins = new Bot({ provider: new FakeProvider() })
    twins.flow('order').ask('a', '?')
    twins.conversation('order', () => undefined)
    await expect(twins.start()).rejects.toThrow(/named "order"/)
  })

  it('commands are checked where they are declared', () => {
    const bot = new Bot({ provider })
    bot.command('stop', () => undefined)
    expect(() => bot.command('/STOP', () => undefined)).toThrow(/declared twice/)
    expect(() => bot.command('two words', () => undefined)).toThrow(/not a name/)
    expect(() => bot.command('help', () => undefined, { interupt: true } as object)).toThrow(
      /no option "interupt"; did you mean "interrupt"/,
    )
    expect(() => bot.schedule('whenever', () => undefined)).toThrow(/"whenever".*cannot be read/)
    expect(() => bot.every('soon' as '1s', () => undefined)).toThrow(/"every" is "soon"/)
  })
})

describe('defaults', () => {
  it('C1: of coordination, and of what belongs to it', () => {
    const { conversation, ...options } = resolveOptions(
      { provider, coordination: { coordinator } },
      plainStore,
    )
    expect(options).toMatchObject({
      turnWaitMs: 120_000,
      settleMs: 60_000,
      providerDownMs: 60_000,
      exclusive: false,
      drainMs: 10_000,
    })
    expect(conversation).toMatchObject({
      forward: false,
      fallback: 'drop',
      notifyMessage: null,
      ttlMs: 300_000,
      maxAnswerBytes: 16_384,
      markers: false,
    })
    const polling = new FakeProvider({ capabilities: { exclusiveSession: true } })
    const exclusive = (providerSession?: 'auto' | 'leader' | 'shared') =>
      resolveOptions(
        {
          provider: polling,
          coordination: { coordinator, ...(providerSession === undefined ? {} : { providerSession }) },
        },
        plainStore,
      ).exclusive
    expect([exclusive(), exclusive('auto'), exclusive('leader'), exclusive('shared')]).toEqual([
      true,
      true,
      true,
      false,
    ])
  })

  it('H1: what is handed over lives as long as the longest wait', () => {
    const ttlOf = (config: object) =>
      resolveOptions({ provider, coordination: { coordinator }, ...config }, plainStore).conversation.ttlMs
    expect(ttlOf({ conversation: { timeout: '20m' } })).toBe(1_200_000)
    expect(ttlOf({ coordination: { coordinator, handover: { ttl: '1m' } } })).toBe(60_000)
  })
})

describe('warnings at start', () => {
  it('K2, S1: a custom store without conditional writes, of one process', async () => {
    const warnings: string[] = []
    const quiet = () => undefined
    const logger: Logger = {
      debug: quiet,
      info: quiet,
      error: quiet,
      warn: (_, message) => warnings.push(message),
    }
    const bot = new Bot({
      provider: new FakeProvider(),
      store: plainStore(),
      coordination: { coordinator },
      logger,
    })
    bot.every('1h', { id: 'report' }, () => undefined)
    await bot.start()
    await bot.stop()
    expect(warnings.join('\n')).toMatch(/runs on every replica/)
    expect(warnings.join('\n')).toMatch(/no setCheckpointIf and clearCheckpointIf/)
  })
})

/** The least that a custom store must have. */
function plainStore(): Store {
  const whole = new MemoryStore()
  return {
    kind: 'mine',
    shared: false,
    getCheckpoint: (key) => whole.getCheckpoint(key),
    setCheckpoint: (key, checkpoint) => whole.setCheckpoint(key, checkpoint),
    clearCheckpoint: (key) => whole.clearCheckpoint(key),
    getUser: (id) => whole.getUser(id),
    setUserIf: (id, data, expected) => whole.setUserIf(id, data, expected),
  }
}
