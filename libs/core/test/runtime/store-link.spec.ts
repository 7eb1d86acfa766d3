/** How a store opens and closes, where the server answers late or not at all. */
import { describe, expect, it } from '@jest/globals'
import { StoreError, StoreLink, type CallRules } from '../../src/index.js'
import { ManualClock, SeededRandom } from '../../src/testing/index.js'

const silent = (): void => undefined
const logger = { debug: silent, info: silent, warn: silent, error: silent }
const RULES: CallRules = { idempotent: true }

/** Each attempt to connect is answered by the test. */
class DoubleLink extends StoreLink<number> {
  readonly attempts: { connected(): void; lost(): void }[] = []
  readonly left: number[] = []
  protected readonly server = { title: 'Double', place: 'here' }

  constructor(readonly clock: ManualClock) {
    super({ startTimeoutMs: 30_000, clock, logger, random: new SeededRandom(1) })
  }

  run<T>(work: (connection: number) => Promise<T>): Promise<T> {
    return this.repeated('call', 'k', RULES, work)
  }

  protected connect(): Promise<number> {
    return new Promise((resolve, reject) => {
      const number = this.attempts.length + 1
      this.attempts.push({ connected: () => resolve(number), lost: () => reject(new Error('lost')) })
    })
  }

  protected disconnect(connection: number): Promise<void> {
    this.left.push(connection)
    return Promise.resolve()
  }

  protected judge(error: unknown): { sort: string } {
    const text = error instanceof Error ? error.message : ''
    return { sort: ['lost', 'again'].includes(text) ? text : 'other' }
  }

  protected failure(operation: string, _key: string | undefined, error: unknown): Error {
    return new StoreError(String(error), { store: 'double', operation })
  }
}

async function openLink(): Promise<{ clock: ManualClock; link: DoubleLink }> {
  const clock = new ManualClock()
  const link = new DoubleLink(clock)
  const opened = link.open()
  await clock.settle()
  link.attempts[0]?.connected()
  await opened
  return { clock, link }
}

const outcome = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'done',
    (reason: unknown) => reason,
  )

describe('S1: a store that is closed while it opens', () => {
  it('is closed after 2 s although the server says nothing; who waits for it is told, and an answer that comes late is let go', async () => {
    const clock = new ManualClock()
    const link = new DoubleLink(clock)
    const called = outcome(link.run((connection) => Promise.resolve(connection)))
    await clock.settle()
    const closed = outcome(link.close())
    await clock.advance(1999)
    expect(await Promise.race([closed, Promise.resolve('not yet')])).toBe('not yet')
    await clock.advance(1)
    expect(await closed).toBe('done')
    expect(String(await called)).toMatch(/closed before the server had answered/)
    link.attempts[0]?.connected()
    await clock.settle()
    expect(link.left).toEqual([1])
    expect(clock.timers).toBe(0)
    // A later call opens again.
    const again = link.run((connection) => Promise.resolve(connection))
    await clock.settle()
    link.attempts[1]?.connected()
    expect(await again).toBe(2)
    await link.close()
    expect(link.left).toEqual([1, 2])
  })

  it('lets calls go on where the server answers in time', async () => {
    const clock = new ManualClock()
    const link = new DoubleLink(clock)
    const called = link.run((connection) => Promise.resolve(connection))
    const closed = link.close()
    await clock.advance(1000)
    link.attempts[0]?.connected()
    expect(await called).toBe(1)
    await closed
    expect(link.left).toEqual([1])
    expect(clock.timers).toBe(0)
  })

  it.each(['while it connects', 'in a pause'])('does not try again: %s', async (when) => {
    const clock = new ManualClock()
    const link = new DoubleLink(clock)
    const opened = outcome(link.open())
    await clock.settle()
    if (when === 'in a pause') link.attempts[0]?.lost()
    await clock.settle()
    const closed = link.close()
    if (when !== 'in a pause') link.attempts[0]?.lost()
    await clock.advance(100)
    await closed
    expect(await opened).toBeInstanceOf(StoreError)
    expect(link.attempts).toHaveLength(1)
    expect(clock.timers).toBe(0)
  })
})

describe('S1: a store that is closed while calls are under way', () => {
  it('lets a call ask all that it has to ask, and a later one opens again', async () => {
    const { clock, link } = await openLink()
    const steps: (() => void)[] = []
    const step = () => new Promise<void>((resolve) => steps.push(resolve))
    const called = link.run(async (connection) => {
      for (let n = 0; n < 2; n += 1) await step()
      expect(link.left).toEqual([])
      return connection
    })
    const closed = link.close()
    await clock.settle()
    const later = link.run((connection) => Promise.resolve(connection))
    steps[0]?.()
    await clock.settle()
    expect([steps.length, link.left.length, link.attempts.length]).toEqual([2, 0, 1])
    steps[1]?.()
    expect(await called).toBe(1)
    await closed
    expect(link.left).toEqual([1])
    await clock.settle()
    link.attempts[1]?.connected()
    expect(await later).toBe(2)
    await link.close()
    expect(link.left).toEqual([1, 2])
  })

  it('makes those again that the server rolls back meanwhile', async () => {
    const { clock, link } = await openLink()
    let rollBack: ((error: Error) => void) | undefined
    const called = link.run((connection) =>
      rollBack === undefined
        ? new Promise<number>((_, reject) => (rollBack = reject))
        : Promise.resolve(connection),
    )
    const closed = link.close()
    await clock.settle()
    rollBack?.(new Error('again'))
    await clock.advance(50)
    expect(await called).toBe(1)
    await closed
    expect([link.left, link.attempts.length]).toEqual([[1], 1])
  })

  it('is closed whatever becomes of them', async () => {
    const { link } = await openLink()
    let fail: (error: Error) => void = () => undefined
    const called = outcome(link.run(() => new Promise((_, reject) => (fail = reject))))
    const closed = link.close()
    fail(new Error('no'))
    expect(await called).toBeInstanceOf(StoreError)
    await closed
    expect(link.left).toEqual([1])
  })
})
