/** What is told while visitors' logs cannot be read: once for all sockets. */
import { afterEach, describe, expect, it } from '@jest/globals'
import { ManualClock, RecordingSink } from '@botmesh/core/testing'
import { LogOutage } from '../src/log-outage.js'
import { Page, replica, type Replica } from './support/replica.js'
import { SharedLog } from './support/shared-log.js'

/** After which the log counts as readable again. */
const QUIET_MS = 5000
const DOWN = new Error('the log is down')
const FIRST = 'webchat: the log cannot be read; trying again'
const STILL = 'webchat: the log still cannot be read; trying again'
const AGAIN = 'webchat: the log can be read again'

describe('scenario 10 in kind: an outage of the log, as it is told', () => {
  function bed() {
    const clock = new ManualClock()
    const sink = new RecordingSink({ clock })
    const outage = new LogOutage({ clock, logger: sink.logger, provider: 'webchat:t' })
    const told = () => sink.logs.map(({ level, message, details }) => ({ level, message, ...details }))
    return { clock, outage, told }
  }
  const sockets = Array.from({ length: 300 }, (_, n) => ({ n }))

  it('one warning for all sockets, with the error and their number; one line at the end, with how long it took', async () => {
    const { clock, outage, told } = bed()
    for (const socket of sockets) outage.failed(socket, DOWN)
    expect(told()).toEqual([])
    await clock.advance(1000)
    const warning = { level: 'warn', message: FIRST, provider: 'webchat:t', err: DOWN }
    expect(told()).toEqual([{ ...warning, waiting: 300, lastedMs: 1000 }])
    await clock.advance(1500)
    for (const socket of sockets) outage.succeeded(socket)
    for (const socket of sockets) outage.succeeded(socket)
    await clock.advance(QUIET_MS)
    expect(told().slice(1)).toEqual([
      { level: 'info', message: AGAIN, provider: 'webchat:t', lastedMs: 2500, sockets: 300 },
    ])
    expect(clock.timers).toBe(0)
  })

  it('a reminder at most once a minute, however many attempts fail', async () => {
    const { clock, outage, told } = bed()
    for (let second = 0; second < 150; second += 1) {
      for (const socket of sockets) outage.failed(socket, DOWN)
      await clock.advance(1000)
    }
    expect(told().map(({ message }) => message)).toEqual([FIRST, STILL, STILL])
    expect(told()[2]).toMatchObject({ waiting: 300, lastedMs: 121_000, err: DOWN })
  })

  it('a log that fails now and then has one outage, short as each failure is; the next one is one of its own', async () => {
    const { clock, outage, told } = bed()
    for (let time = 0; time < 2; time += 1) {
      for (let failure = 0; failure < 10; failure += 1) {
        outage.failed(sockets[0]!, DOWN)
        await clock.advance(400)
        outage.succeeded(sockets[0]!)
        await clock.advance(QUIET_MS - 1)
      }
      await clock.advance(1)
    }
    const lastedMs = 9 * (400 + QUIET_MS - 1) + 400
    const both = [
      { message: FIRST, waiting: 1 },
      { message: AGAIN, lastedMs, sockets: 1 },
    ]
    expect(told()).toMatchObject([...both, ...both])
  })

  it('a part that works does not end it, nor does a page that leaves before anything was read', async () => {
    const { clock, outage, told } = bed()
    const [broken, working, third] = [sockets[0]!, sockets[1]!, sockets[2]!]
    for (let second = 0; second < 30; second += 1) {
      outage.failed(broken, DOWN)
      outage.succeeded(working)
      await clock.advance(1000)
    }
    expect(told()).toMatchObject([{ message: FIRST, waiting: 1 }])
    outage.failed(broken, DOWN)
    outage.gone(broken)
    outage.failed(third, DOWN)
    outage.gone(third)
    expect(told()).toHaveLength(1)
    outage.succeeded(working)
    await clock.advance(QUIET_MS)
    expect(told()).toMatchObject([{ message: FIRST }, { message: AGAIN, lastedMs: 30_000 }])
  })

  it('the last one that waits leaves while others read: it is over', async () => {
    const { clock, outage, told } = bed()
    outage.failed(sockets[0]!, DOWN)
    outage.succeeded(sockets[1]!)
    outage.gone(sockets[0]!)
    await clock.advance(QUIET_MS)
    expect(told()).toMatchObject([{ message: FIRST, waiting: 1 }, { message: AGAIN }])
  })

  it('the last one that waits leaves, and nobody reads for a while: it is forgotten, and what nobody saw is not counted', async () => {
    const { clock, outage, told } = bed()
    outage.failed(sockets[0]!, DOWN)
    await clock.advance(2000)
    outage.gone(sockets[0]!)
    await clock.advance(QUIET_MS)
    expect(clock.timers).toBe(0)
    await clock.advance(8 * 3_600_000)
    outage.succeeded(sockets[1]!)
    await clock.advance(QUIET_MS)
    expect(told()).toMatchObject([{ message: FIRST, waiting: 1 }])
    outage.failed(sockets[1]!, DOWN)
    await clock.advance(2000)
    outage.succeeded(sockets[1]!)
    await clock.advance(QUIET_MS)
    expect(told().slice(1)).toMatchObject([
      { message: FIRST, waiting: 1, lastedMs: 1000 },
      { message: AGAIN, lastedMs: 2000, sockets: 1 },
    ])
  })

  it('a page that is loaded again goes on with the same outage', async () => {
    const { clock, outage, told } = bed()
    outage.failed(sockets[0]!, DOWN)
    await clock.advance(2000)
    outage.gone(sockets[0]!)
    await clock.advance(QUIET_MS - 1)
    outage.failed(sockets[1]!, DOWN)
    await clock.advance(QUIET_MS)
    outage.gone(sockets[1]!)
    await clock.advance(QUIET_MS - 1)
    outage.succeeded(sockets[2]!)
    await clock.advance(QUIET_MS)
    const lastedMs = 2000 + 3 * QUIET_MS - 2
    expect(told()).toMatchObject([{ message: FIRST }, { message: AGAIN, lastedMs, sockets: 1 }])
  })

  it('closing tells what was not told, once, and leaves no timer', async () => {
    const { clock, outage, told } = bed()
    outage.failed(sockets[0]!, DOWN)
    outage.close()
    outage.close()
    expect(told()).toMatchObject([{ message: FIRST, waiting: 1 }])
    outage.failed(sockets[0]!, DOWN)
    outage.succeeded(sockets[0]!)
    outage.close()
    expect(told().slice(1)).toMatchObject([{ message: FIRST, waiting: 1 }, { message: AGAIN }])
    expect(clock.timers).toBe(0)
  })
})

describe('scenario 10 in kind: a log out of reach for every socket of a web chat', () => {
  const running: Replica[] = []
  afterEach(async () => {
    await Promise.all(running.splice(0).map((one) => one.close()))
  })

  it('each goes on trying, less and less often, and is served when it is back; the log tells it once', async () => {
    const log = new SharedLog()
    const clock = new ManualClock()
    // Pongs come in real time, so none may be asked for while the clock is moved.
    const chat = await replica({ heartbeat: '10m' }, log, clock)
    running.push(chat)
    log.failReads = Infinity
    const pages = await Promise.all(Array.from({ length: 5 }, () => Page.join(chat.url)))
    await readsOf(log, 5)
    const told = () => chat.logs.filter(({ message }) => message.startsWith('webchat: the log'))
    await clock.advance(1000)
    expect(told()).toMatchObject([{ level: 'warn', message: FIRST, details: { waiting: 5 } }])

    const before = log.reads
    await clock.advance(120_000)
    expect(told().map(({ message }) => message)).toEqual([FIRST, STILL])
    // Pauses of 2.5 to 5 s in the end, which five pages do not take in step.
    expect((log.reads - before) / 5).toBeGreaterThanOrEqual(120 / 5)
    expect((log.reads - before) / 5).toBeLessThan(120 / 2.5 + 5)

    for (const { visitor } of pages) await chat.provider.send({ chatId: visitor.id }, { text: 'kept' })
    log.failReads = 0
    await clock.advance(5000)
    for (const page of pages) await page.next('msg', (one) => one.text === 'kept')
    await clock.advance(QUIET_MS)
    const { level, message, details } = told().at(-1)!
    expect({ level, message, details }).toMatchObject({
      level: 'info',
      message: AGAIN,
      details: { sockets: 5 },
    })
    expect(told()).toHaveLength(3)
    for (const page of pages) expect(page.texts('bot')).toEqual(['kept'])
  })

  it('a page that leaves is waited for no more, also if its read fails only then', async () => {
    const log = new SharedLog()
    const clock = new ManualClock()
    const chat = await replica({ heartbeat: '10m' }, log, clock)
    running.push(chat)
    const leave = async (page: Page) => {
      await page.leave()
      while (chat.provider.connections > 0) await new Promise((resolve) => setImmediate(resolve))
    }
    log.failReads = Infinity
    const waiting = await Page.join(chat.url)
    await readsOf(log, 1)
    await leave(waiting)
    log.failReads = 0
    const served = await Page.join(chat.url)
    await readsOf(log, 2)
    await leave(served)
    await clock.advance(QUIET_MS)
    expect(chat.logs.map(({ message }) => message)).toEqual([FIRST, AGAIN])

    let fail = () => {}
    const reading = new Promise<void>((resolve) => {
      log.read = () => {
        resolve()
        return new Promise((_, reject) => (fail = () => reject(DOWN)))
      }
    })
    const late = await Page.join(chat.url)
    await reading
    await leave(late)
    fail()
    await clock.advance(120_000)
    expect(chat.logs).toHaveLength(2)
  })
})

/** Resolves once the log was read that often. */
async function readsOf(log: SharedLog, count: number): Promise<void> {
  while (log.reads < count) await new Promise<void>((resolve) => (log.onRead = resolve))
}
