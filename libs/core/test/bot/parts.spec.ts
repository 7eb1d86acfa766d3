/** Parts of the bot by themselves: who uses ctx.user, merging, events, texts, tasks. */
import { describe, expect, it } from '@jest/globals'
import { ConfigError, MemoryStore, silentLogger, systemRandom, type Logger } from '../../src/index.js'
import { ManualClock } from '../../src/testing/index.js'
import { EventHub } from '../../src/bot/events.js'
import { TaskList } from '../../src/bot/task-list.js'
import { TextCatalogue } from '../../src/bot/texts.js'
import { UserState, mergeChanges } from '../../src/bot/user-state.js'
import { mayUseUser } from '../../src/bot/uses-user.js'
import { cron, interval } from '../../src/scheduler/occurrences.js'

type Any = Record<string, (...all: unknown[]) => unknown> & { user: Record<string, unknown>; body: string }

describe('B2: which handlers may use ctx.user', () => {
  const service = { handle: (...all: unknown[]) => all.length }
  const innocent = [
    (ctx: Any) => ctx.reply?.(ctx.body),
    async (c: Any) => void (await c.ask?.('user?')),
    () => undefined,
    function named(ctx: Any) {
      return ctx.reply?.(ctx.body)
    },
    (c: Any, ctx: Any) => ctx.reply?.(c.body),
  ]
  const suspects = [
    (ctx: Any) => ctx.user.count,
    (ctx: Any) => service.handle(ctx),
    ({ user }: Any) => user,
    (ctx: Any) => ctx['user'],
    (ctx: Any) => ({ ...ctx }),
    (c: Any) => c.ctx,
    (ctx: Any) => {
      const other = ctx
      return other.user
    },
    service.handle.bind(service),
    (...all: Any[]) => all[0]?.user,
  ]
  it.each(innocent.map((code) => [String(code), code] as const))('innocent: %s', (_, code) => {
    expect(mayUseUser(code)).toBe(false)
  })
  it.each(suspects.map((code) => [String(code), code] as const))('may: %s', (_, code) => {
    expect(mayUseUser(code)).toBe(true)
  })
})

describe('ctx.user between two chats of one user', () => {
  it('independent fields are merged, nested ones too; of one field the later write wins', () => {
    const merged = mergeChanges(
      { name: 'Ana', cart: { a: 1, b: 1 }, old: true, list: [1] },
      { name: 'Ana', cart: { a: 2, b: 1 }, list: [1, 2] },
      { name: 'Ana B', cart: { a: 1, b: 1, c: 9 }, old: true, list: [1], more: 1 },
    )
    expect(merged).toEqual({ name: 'Ana B', cart: { a: 2, b: 1, c: 9 }, list: [1, 2], more: 1 })
  })

  it('a write that somebody overtook is merged and made again', async () => {
    const store = new MemoryStore()
    const [a, b] = [await UserState.load(store, 'memory', 'u'), await UserState.load(store, 'memory', 'u')]
    a.data.seenBy = 'a'
    b.data.language = 'es'
    await a.save()
    await b.save()
    expect((await store.getUser('u'))?.data).toEqual({ seenBy: 'a', language: 'es' })
  })

  it('nothing is written if nothing changed', async () => {
    const store = new MemoryStore()
    await (await UserState.load(store, 'memory', 'u')).save()
    expect(await store.getUser('u')).toBeNull()
  })
})

describe('N3: events', () => {
  const logged: string[] = []
  const logger: Logger = { ...silentLogger, error: (_, message) => logged.push(message) }

  it('an error that nobody listens to is logged; a listener that throws or rejects is logged', async () => {
    const hub = new EventHub('shop', logger)
    hub.error(new Error('x'))
    expect(logged.splice(0)).toEqual(['the bot met an error; nobody listens to its "error" event'])
    const seen: unknown[] = []
    hub.on('error', () => {
      throw new Error('listener')
    })
    hub.on('error', () => Promise.reject(new Error('listener')))
    const listener = (event: unknown) => seen.push(event)
    hub.on('error', listener)
    hub.error('bad')
    await Promise.resolve()
    expect(seen).toEqual([{ bot: 'shop', error: 'bad' }])
    expect(logged.splice(0)).toEqual(['a listener failed', 'a listener failed'])
    hub.off('error', listener)
    expect(hub.count('error')).toBe(2)
    expect(() => hub.on('coordination:leeder' as 'error', listener)).toThrow(
      /did you mean "coordination:leader"/,
    )
  })
})

describe('B5: texts', () => {
  it('by language, base language, locale and English; the application’s own first', () => {
    const texts = new TextCatalogue({ es: { greeting: 'Hola, {name}' }, 'pt-BR': { greeting: 'Oi' } }, 'es')
    expect(texts.find('greeting', 'es-MX', { name: 'Ana' })).toBe('Hola, Ana')
    expect(texts.find('greeting', 'pt-BR')).toBe('Oi')
    expect(texts.find('greeting', 'de', { name: 'Ana' })).toBe('Hola, Ana')
    expect(texts.find('core.conversation.interrupted', 'pt')).toMatch(/^Desculpe/)
    expect(texts.find('core.conversation.interrupted', undefined)).toMatch(/^Perdona/)
    expect(texts.find('unknown.id', 'en')).toBe('unknown.id')
  })
})

describe('J2: tasks', () => {
  function tasks() {
    const clock = new ManualClock(Date.UTC(2030, 0, 1, 8, 59, 30))
    const errors: unknown[] = []
    const events = new EventHub('shop', silentLogger)
    events.on('error', ({ error }) => errors.push(error))
    const store = new MemoryStore({ clock })
    const around = { store, random: systemRandom, coordinator: null, scheduler: null, drainMs: 1000 }
    const list = new TaskList({ clock, logger: silentLogger, name: 'shop', ...around }, events)
    return { clock, errors, list }
  }

  it('run each interval from start to stop, never over themselves, and outlive their errors', async () => {
    const { clock, errors, list } = tasks()
    let [runs, slow] = [0, 0]
    list.add(
      interval(1000),
      () => {
        runs++
        if (runs === 2) throw new Error('once')
      },
      undefined,
    )
    let release: () => void = () => undefined
    list.add(interval(1000), {}, () => {
      slow++
      return new Promise<void>((resolve) => (release = resolve))
    })
    await clock.advance(5000)
    expect(runs).toBe(0)
    list.start()
    await clock.advance(3500)
    expect([runs, slow]).toEqual([3, 1])
    expect(errors).toEqual([new Error('once')])
    release()
    await clock.advance(1000)
    expect(slow).toBe(2)
    release()
    await list.stop()
    await clock.advance(5000)
    expect(runs).toBe(4)
    expect(clock.timers).toBe(0)
  })

  it('an interval goes on though the time of day is set back', async () => {
    const { clock, list } = tasks()
    let runs = 0
    list.add(interval(1000), () => runs++, undefined)
    list.start()
    await clock.advance(500)
    clock.shiftWall(-3_600_000)
    await clock.advance(3000)
    expect(runs).toBe(3)
    await list.stop()
  })

  it('cron follows the time of day when that is set', async () => {
    const { clock, list } = tasks()
    const at: string[] = []
    list.add(
      cron('0 10 * * *', 'Europe/Madrid'),
      () => void at.push(new Date(clock.now()).toISOString()),
      undefined,
    )
    list.start()
    const hour = 3_600_000
    await clock.advance(1000)
    clock.shiftWall(-hour)
    await clock.advance(hour - 1000)
    // By the clock on the wall it is a minute to nine (UTC) only now.
    expect(at).toEqual([])
    await clock.advance(60_000)
    clock.shiftWall(22 * hour)
    await clock.advance(3 * hour)
    expect(at).toEqual(['2030-01-01T09:00:00.000Z', '2030-01-02T09:00:00.000Z'])
    // It was far ahead, and has been put right.
    clock.shiftWall(-500 * 24 * hour)
    await clock.advance(24 * hour)
    expect(at).toHaveLength(3)
    await list.stop()
    expect(clock.timers).toBe(0)
  })

  it('run at the times of a cron expression, in a time zone', async () => {
    const { clock, list } = tasks()
    const at: string[] = []
    const task = list.add(
      cron('0 10 * * *', 'Europe/Madrid'),
      () => void at.push(new Date(clock.now()).toISOString()),
      undefined,
    )
    list.start()
    await clock.advance(2 * 24 * 3_600_000)
    expect(at).toEqual(['2030-01-01T09:00:00.000Z', '2030-01-02T09:00:00.000Z'])
    task.stop()
    await clock.advance(24 * 3_600_000)
    expect(at).toHaveLength(2)
    expect(() => cron('0 10 * * *', 'Mars/Olympus')).toThrow(ConfigError)
    await list.stop()
  })
})
