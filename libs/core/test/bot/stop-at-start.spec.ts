/** A stop while a start waits for what does not answer: the start is given up at once, and nothing of it is left. */
import { describe, expect, it } from '@jest/globals'
import { Bot, MemoryStore, SessionCoordinator, silentLogger, type BotConfig } from '../../src/index.js'
import {
  FakeProvider,
  FaultyBackend,
  ManualClock,
  MemoryBackend,
  MemoryCoordinationHub,
} from '../../src/testing/index.js'

const STOPPED = { code: 'COORDINATION_UNAVAILABLE', details: { why: 'stopped' } }
const UNANSWERED = 'a start that nobody answers'

interface Silent {
  clock: ManualClock
  config: BotConfig & { provider: FakeProvider }
  /** From now on it answers. */
  heal: () => void
}

/** What a bot waits for says nothing, until it is healed. */
const SILENT: Record<string, () => Silent> = {
  'the store'() {
    const clock = new ManualClock()
    let silent = true
    const open = () => (silent ? new Promise<void>(() => undefined) : Promise.resolve())
    const store = Object.assign(new MemoryStore({ clock }), { open })
    return { clock, config: configOf(clock, { store }), heal: () => (silent = false) }
  },
  'the coordinator'() {
    const clock = new ManualClock()
    let silent = true
    const memory = new MemoryBackend(new MemoryCoordinationHub({ clock }))
    const backend = new FaultyBackend(memory, { fault: () => (silent ? 'not-sent' : null) })
    const coordinator = new SessionCoordinator({ backend, clock })
    return { clock, config: configOf(clock, { coordination: { coordinator } }), heal: () => (silent = false) }
  },
  'the transport'() {
    const clock = new ManualClock()
    const config = configOf(clock)
    const { provider } = config
    const start = provider.start.bind(provider)
    provider.start = (_sink, signal) =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    return { clock, config, heal: () => (provider.start = start) }
  },
}

function configOf(clock: ManualClock, more: Partial<BotConfig> = {}): Silent['config'] {
  return { logger: silentLogger, clock, ...more, provider: new FakeProvider() }
}

const outcomeOf = (start: Promise<void>): Promise<unknown> =>
  start.then(
    () => 'started',
    (error: unknown) => error,
  )

async function microtasks(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await Promise.resolve()
}

describe.each(Object.keys(SILENT))(`N5: ${UNANSWERED}, %s`, (what) => {
  it('ends at once when the bot is stopped: it rejects as stopped, no timer is left, and a later start works', async () => {
    const { clock, config, heal } = SILENT[what]!()
    const bot = new Bot(config)
    bot.onMessage((ctx) => ctx.reply(ctx.body))
    const refused = expect(bot.start()).rejects.toMatchObject(STOPPED)
    await clock.advance(2000)
    expect(bot.health().status).toBe('starting')
    const before = clock.monotonic()
    const unready = expect(bot.ready).rejects.toMatchObject(STOPPED)
    await Promise.all([bot.stop(), refused, unready])
    expect(clock.monotonic()).toBe(before)
    expect(bot.health().status).toBe('stopped')
    expect(clock.timers).toBe(0)
    heal()
    await bot.start()
    await config.provider.receive('again')
    await clock.settle()
    expect(config.provider.texts).toEqual(['again'])
    await bot.stop()
    expect(config.coordination?.coordinator.status.status ?? 'stopped').toBe('stopped')
    expect(clock.timers).toBe(0)
  })

  it('begins anew when it is started again before its end', async () => {
    const { clock, config, heal } = SILENT[what]!()
    const bot = new Bot(config)
    const refused = expect(bot.start()).rejects.toMatchObject(STOPPED)
    await clock.settle()
    const stopped = bot.stop()
    heal()
    const again = bot.start()
    await Promise.all([refused, stopped, again])
    expect(bot.health()).toMatchObject({ status: 'running', ready: true })
    await bot.stop()
    // A call of the first start may still be under way.
    await clock.advance(100)
    expect(clock.timers).toBe(0)
  })
})

describe('N5: a stop at any moment of a start', () => {
  it('is the last word: however far the start has come, nothing runs afterwards', async () => {
    for (let ticks = 0; ticks < 60; ticks++) {
      const clock = new ManualClock()
      const store = new MemoryStore({ clock })
      const coordinator = store.coordinator({ clock })
      const provider = new FakeProvider()
      const bot = new Bot({ provider, store, coordination: { coordinator }, clock, logger: silentLogger })
      const started = outcomeOf(bot.start())
      await microtasks(ticks)
      await bot.stop()
      if ((await started) !== 'started') expect(await started).toMatchObject(STOPPED)
      await clock.settle()
      expect({ ticks, timers: clock.timers, connected: provider.started }).toEqual({
        ...{ ticks, timers: 0, connected: false },
      })
      expect(['idle', 'stopped']).toContain(coordinator.status.status)
    }
  })

  it('a coordinator on its own is stopped as well, whenever the stop comes', async () => {
    for (let ticks = 0; ticks < 20; ticks++) {
      const clock = new ManualClock()
      const coordinator = new MemoryStore({ clock }).coordinator({ clock })
      const started = outcomeOf(coordinator.start())
      await microtasks(ticks)
      await coordinator.stop()
      if ((await started) !== 'started') expect(await started).toMatchObject(STOPPED)
      await clock.settle()
      expect({ ticks, timers: clock.timers }).toEqual({ ticks, timers: 0 })
      expect(['idle', 'stopped']).toContain(coordinator.status.status)
    }
  })
})

describe('N5: a coordinator that is started, stopped and started', () => {
  it('is live: the first start rejects as stopped at once, the last word counts', async () => {
    for (let ticks = 0; ticks < 20; ticks++) {
      const clock = new ManualClock()
      const coordinator = new MemoryStore({ clock }).coordinator({ clock })
      const first = outcomeOf(coordinator.start())
      await microtasks(ticks)
      const stopped = coordinator.stop()
      const before = clock.monotonic()
      await Promise.all([stopped, coordinator.start()])
      if ((await first) !== 'started') expect(await first).toMatchObject(STOPPED)
      expect({ ticks, ms: clock.monotonic() - before, status: coordinator.status.status }).toEqual({
        ...{ ticks, ms: 0, status: 'live' },
      })
      expect(await coordinator.turns.take('k')).toHaveProperty('fence')
      await coordinator.stop()
      expect(clock.timers).toBe(0)
    }
  })

  it('is stopped, if it is stopped once more meanwhile', async () => {
    const coordinator = new MemoryStore().coordinator()
    const first = expect(coordinator.start()).rejects.toMatchObject(STOPPED)
    const stopped = coordinator.stop()
    const second = expect(coordinator.start()).rejects.toMatchObject(STOPPED)
    await Promise.all([first, stopped, second, coordinator.stop()])
    expect(['idle', 'stopped']).toContain(coordinator.status.status)
  })
})

describe('N5: a stop during a start whose transport hangs in both', () => {
  it('is over when coordinator and store have been let go of, within drainMs', async () => {
    const clock = new ManualClock()
    const closed: string[] = []
    const store = Object.assign(new MemoryStore({ clock }), {
      close: async () => void closed.push('store'),
    })
    const coordinator = store.coordinator({ clock })
    const provider = new FakeProvider()
    const never = () => new Promise<void>(() => undefined)
    Object.assign(provider, { start: never, stop: never })
    const config = { provider, store, coordination: { coordinator }, clock, logger: silentLogger }
    const bot = new Bot({ ...config, drainMs: 3000 })
    const refused = expect(bot.start()).rejects.toMatchObject(STOPPED)
    await clock.settle()
    let atTheEnd: unknown
    const stopped = bot.stop().then(() => (atTheEnd = [coordinator.status.status, ...closed]))
    await clock.advance(3000)
    await Promise.all([refused, stopped])
    expect(atTheEnd).toEqual(['stopped', 'store'])
  })
})

describe('N5: what several bots share', () => {
  it('a bot that is stopped while it starts leaves the store to the other one, which starts', async () => {
    const clock = new ManualClock()
    const counts = { closed: 0 }
    let open: () => void = () => undefined
    const opening = new Promise<void>((resolve) => (open = resolve))
    const store = Object.assign(new MemoryStore({ clock }), {
      open: () => opening,
      close: async () => void counts.closed++,
    })
    const of = (id: string) => {
      const config = { ...configOf(clock, { store }), provider: new FakeProvider({ id: `fake:${id}` }) }
      return new Bot(config)
    }
    const [a, b] = [of('a'), of('b')]
    const refused = expect(a.start()).rejects.toMatchObject(STOPPED)
    const other = b.start()
    await Promise.all([a.stop(), refused])
    open()
    await other
    expect(counts.closed).toBe(0)
    expect(b.health().ready).toBe(true)
    await b.stop()
    expect(counts.closed).toBe(1)
  })

  it('the last bot stops their coordinator each time, not only after its first start', async () => {
    const clock = new ManualClock()
    const store = new MemoryStore({ clock })
    const coordinator = store.coordinator({ clock })
    const bot = new Bot({ ...configOf(clock, { store }), coordination: { coordinator } })
    for (let n = 0; n < 2; n++) {
      await bot.start()
      expect(coordinator.status.status).toBe('live')
      await bot.stop()
      expect(coordinator.status.status).toBe('stopped')
    }
    // One that the application has begun itself is the application's to stop.
    await coordinator.start()
    await bot.start()
    await bot.stop()
    expect(coordinator.status.status).toBe('live')
    await coordinator.stop()
  })
})

describe('N5: messages that a transport takes while it still starts', () => {
  it('are answered before a stop ends it', async () => {
    const clock = new ManualClock()
    const config = configOf(clock)
    const { provider } = config
    const start = provider.start.bind(provider)
    provider.start = async (...args) => {
      await start(...args)
      await new Promise(() => undefined)
    }
    const bot = new Bot(config)
    let begun = false
    bot.onMessage(async (ctx) => {
      begun = true
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, 500))
      await ctx.reply(ctx.body)
    })
    const refused = expect(bot.start()).rejects.toMatchObject(STOPPED)
    await clock.settle()
    void provider.receive('hello')
    await clock.advanceUntil(() => begun)
    let over = false
    const stopped = bot.stop().finally(() => (over = true))
    await clock.advanceUntil(() => over)
    await Promise.all([stopped, refused])
    expect(provider.texts).toEqual(['hello'])
    expect(provider.started).toBe(false)
    expect(clock.timers).toBe(0)
  })
})
