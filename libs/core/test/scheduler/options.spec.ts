/** Options of the scheduler: who leads, what a store must have, what is refused. */
import { describe, expect, it } from '@jest/globals'
import { Bot, ConfigError, MemoryStore, type BotConfig, type Store } from '../../src/index.js'
import {
  FakeProvider,
  ManualClock,
  MemoryCoordinationHub,
  MemoryCoordinator,
} from '../../src/testing/index.js'

const make = (config: Partial<BotConfig>) => () => new Bot({ provider: new FakeProvider(), ...config })

/** A store of somebody else's: what the contract asks for, and what is given. */
function custom(besides: object): Store {
  const inner = new MemoryStore()
  const { kind, shared } = { kind: 'custom', shared: true }
  const base = {
    getCheckpoint: inner.getCheckpoint.bind(inner),
    setCheckpoint: inner.setCheckpoint.bind(inner),
    clearCheckpoint: inner.clearCheckpoint.bind(inner),
    getUser: inner.getUser.bind(inner),
    setUserIf: inner.setUserIf.bind(inner),
  }
  return { kind, shared, ...base, ...besides }
}

describe('J1: what the scheduler needs', () => {
  const setCheckpointIf = () => Promise.resolve(true)
  it.each<[string, Partial<BotConfig>, RegExp]>([
    [
      'compare-and-set',
      { scheduler: true, store: custom({}) },
      /needs a store with setCheckpointIf.*the custom store has none/,
    ],
    [
      'somebody who decides',
      { scheduler: true, store: custom({ setCheckpointIf }) },
      /set coordination, or scheduler.lease; the custom store has no leases/,
    ],
    [
      'a lease that is one',
      { scheduler: { lease: {} as MemoryStore } },
      /"scheduler.lease" is an object; accepted: store.leases\(\), or a coordinator/,
    ],
    ['known options', { scheduler: { leese: 1 } as object }, /no option "leese"; did you mean "lease"/],
    ['an object', { scheduler: 'yes' as unknown as true }, /"scheduler" is "yes"/],
    ['a lease of a second', { scheduler: { leaseMs: 10 } }, /"scheduler.leaseMs" is 10/],
    ['a pause', { scheduler: { retryMs: 0 } }, /"scheduler.retryMs" is 0/],
    [
      'pauses that grow',
      { scheduler: { retryMs: '1m', maxRetryMs: '1s' } },
      /"scheduler.maxRetryMs" is "1s"/,
    ],
    ['a name', { scheduler: { name: '' } }, /"scheduler.name" is ""/],
  ])('%s', (_what, config, words) => {
    expect(make(config)).toThrow(ConfigError)
    expect(make(config)).toThrow(words)
  })

  it('a store without leases will do where somebody else decides', () => {
    const store = custom({ setCheckpointIf })
    expect(
      make({
        store,
        scheduler: true,
        coordination: { coordinator: new MemoryCoordinator({ hub: new MemoryCoordinationHub() }) },
      }),
    ).not.toThrow()
    expect(make({ store, scheduler: { lease: new MemoryStore().leases() } })).not.toThrow()
    expect(make({ store, scheduler: false })).not.toThrow()
  })
})

/** A bot by itself with a task each second. */
async function alone(config: Partial<BotConfig>) {
  const clock = (config.clock as ManualClock | undefined) ?? new ManualClock()
  const ran: number[] = []
  const warned: string[] = []
  const warn = (_details: object, text: string) => void warned.push(text)
  const none = () => undefined
  const logger = { debug: none, info: none, warn, error: warn }
  const bot = new Bot({ provider: new FakeProvider(), clock, logger, scheduler: true, ...config })
  bot.every('1s', { id: 'tick' }, (task) => void ran.push(task.fence))
  const start = bot.start()
  await clock.advance(3500)
  await start
  const stop = async () => {
    const stopping = bot.stop()
    await clock.advance(20_000)
    await stopping
  }
  return { bot, ran, warned, stop, clock }
}

describe('J1: who leads', () => {
  it('without coordination the store’s leases; memory says what it cannot promise', async () => {
    const { ran, warned, stop, clock } = await alone({})
    expect(ran).toHaveLength(3)
    expect(warned.join()).toMatch(/remembers in the memory of this process only/)
    await stop()
    expect(ran).toHaveLength(3)
    expect(clock.timers).toBe(0)
  })

  it('scheduler.lease wins over the coordinator; a coordinator of its own is started and stopped with the bot', async () => {
    const clock = new ManualClock()
    const hub = () => new MemoryCoordinationHub({ clock })
    const own = new MemoryCoordinator({ hub: hub(), clock })
    const coordinator = new MemoryCoordinator({ hub: hub(), clock })
    const { ran, stop } = await alone({ coordination: { coordinator }, scheduler: { lease: own }, clock })
    await clock.advance(3000)
    expect(own.status.status).toBe('live')
    expect(ran.length).toBeGreaterThan(2)
    expect(await coordinator.tryLead('scheduler:fake:test')).not.toBeNull()
    const stopping = stop()
    await clock.advance(60_000)
    await stopping
    expect(own.status.status).toBe('stopped')
  })
})
