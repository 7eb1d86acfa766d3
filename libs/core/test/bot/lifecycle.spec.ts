/** Starts and stops that overlap: the last word counts, and nothing is begun or ended twice. */
import { describe, expect, it } from '@jest/globals'
import { Bot, MemoryStore, silentLogger } from '../../src/index.js'
import { FakeProvider, ManualClock } from '../../src/testing/index.js'

/** A bot whose store opens when it is told to, and counts. */
function slowBot() {
  const provider = new FakeProvider()
  const store = new MemoryStore()
  const counts = { opened: 0, closed: 0 }
  const waiting: (() => void)[] = []
  const bot = new Bot({
    provider,
    logger: silentLogger,
    store: Object.assign(store, {
      open: () => new Promise<void>((resolve) => waiting.push(resolve)).then(() => void counts.opened++),
      close: async () => void counts.closed++,
    }),
  })
  const open = async () => {
    while (waiting.length === 0) await new Promise((resolve) => setImmediate(resolve))
    for (const resolve of waiting.splice(0)) resolve()
  }
  return { bot, provider, counts, open }
}

describe('N5: starts and stops that overlap', () => {
  it('a stop during a start ends it, once, and the bot is stopped all the while', async () => {
    const { bot, provider, counts, open } = slowBot()
    const refused = expect(bot.start()).rejects.toMatchObject({ details: { why: 'stopped' } })
    const stops = [bot.stop(), bot.stop()]
    expect(bot.health().status).toBe('stopping')
    await Promise.all([refused, ...stops, bot.stop()])
    expect(counts).toEqual({ opened: 0, closed: 1 })
    expect(provider.started).toBe(false)
    expect(bot.health().status).toBe('stopped')
    // What opens after all is closed after all.
    await open()
    await new Promise((resolve) => setImmediate(resolve))
    expect(counts).toEqual({ opened: 1, closed: 2 })
  })

  it('two starts while a stop is under way are one', async () => {
    const { bot, provider, counts, open } = slowBot()
    await Promise.all([bot.start(), open()])
    const stopping = bot.stop()
    const starts = [bot.start(), bot.start()]
    await stopping
    await open()
    await Promise.all(starts)
    expect(counts).toEqual({ opened: 2, closed: 1 })
    expect(bot.health().status).toBe('running')
    expect(provider.started).toBe(true)
    await bot.stop()
    expect(counts).toEqual({ opened: 2, closed: 2 })
  })

  it('stop, start, stop: the bot is stopped, and the start says so', async () => {
    const { bot, provider, counts, open } = slowBot()
    await Promise.all([bot.start(), open()])
    const first = bot.stop()
    const start = bot.start()
    const refused = expect(start).rejects.toMatchObject({ code: 'COORDINATION_UNAVAILABLE' })
    await Promise.all([first, bot.stop(), refused])
    expect(counts).toEqual({ opened: 1, closed: 1 })
    expect(provider.started).toBe(false)
    expect(bot.health().status).toBe('stopped')
  })
})

describe('N5: a store that nobody answers for', () => {
  it('is named in the log after three seconds of a start, and never later', async () => {
    const clock = new ManualClock()
    const lines: string[] = []
    let open: () => void = () => undefined
    const store = Object.assign(new MemoryStore({ clock }), {
      open: () => new Promise<void>((resolve) => (open = resolve)),
    })
    const logger = { ...silentLogger, warn: (_: object, line: string) => void lines.push(line) }
    const bot = new Bot({ provider: new FakeProvider(), store, clock, logger })
    const starting = bot.start()
    await clock.advance(2999)
    expect(lines).toEqual([])
    await clock.advance(1)
    expect(lines).toEqual([expect.stringContaining('memory store does not answer yet')])
    open()
    await starting
    await clock.advance(10_000)
    expect(lines).toHaveLength(1)
    await bot.stop()
  })
})
