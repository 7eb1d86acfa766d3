/** When tasks run: cron expressions over changes of daylight saving, and intervals. */
import { describe, expect, it } from '@jest/globals'
import { Bot, ConfigError } from '../../src/index.js'
import { cron, interval, type Occurrences } from '../../src/scheduler/occurrences.js'
import { FakeProvider } from '../../src/testing/index.js'

/** The first `count` after an instant, by the clock on the wall of that place. */
function walls(expression: string, zone: string, from: string, count: number): string[] {
  const when = cron(expression, zone)
  return list(when, Date.parse(from), count).map((at) => wall(at, zone))
}

function list(when: Occurrences, from: number, count: number): number[] {
  const all: number[] = []
  for (let at = when.next(from); at !== null && all.length < count; at = when.next(at)) all.push(at)
  return all
}

function wall(at: number, zone: string): string {
  const text = new Intl.DateTimeFormat('sv', {
    ...{ timeZone: zone, day: '2-digit', hour: '2-digit', minute: '2-digit', timeZoneName: 'longOffset' },
  }).format(at)
  // Swedish has a minus sign of its own.
  return text.replace(/\s+/g, ' ').replace('−', '-')
}

describe('J1, scenario 32: the hour that is left out in spring', () => {
  it.each([
    // 02:00 to 03:00 does not exist.
    [
      'Europe/Madrid',
      '30 2 * * *',
      '2026-03-28T00:00:00Z',
      ['28 02:30 GMT+01:00', '29 03:00 GMT+02:00', '30 02:30 GMT+02:00'],
    ],
    [
      'America/New_York',
      '30 2 * * *',
      '2026-03-07T05:00:00Z',
      ['07 02:30 GMT-05:00', '08 03:00 GMT-04:00', '09 02:30 GMT-04:00'],
    ],
    // Half an hour only.
    [
      'Australia/Lord_Howe',
      '15 2 * * *',
      '2026-10-02T14:00:00Z',
      ['03 02:15 GMT+10:30', '04 02:30 GMT+11:00', '05 02:15 GMT+11:00'],
    ],
    // Midnight itself.
    [
      'America/Santiago',
      '0 0 * * *',
      '2026-09-05T02:00:00Z',
      ['05 00:00 GMT-04:00', '06 01:00 GMT-03:00', '07 00:00 GMT-03:00'],
    ],
    // A list of fixed minutes: once, not once a minute.
    [
      'Europe/Madrid',
      '0,30 2 * * *',
      '2026-03-28T12:00:00Z',
      ['29 03:00 GMT+02:00', '30 02:00 GMT+02:00', '30 02:30 GMT+02:00'],
    ],
  ])('%s, %s: right after it, once', (zone, expression, from, expected) => {
    expect(walls(expression, zone, from, 3)).toEqual(expected)
  })

  it('an expression with * follows time as it passes', () => {
    expect(walls('*/30 * * * *', 'Europe/Madrid', '2026-03-29T00:00:00Z', 3)).toEqual([
      '29 01:30 GMT+01:00',
      '29 03:00 GMT+02:00',
      '29 03:30 GMT+02:00',
    ])
  })
})

describe('J1, scenario 32: the hour that comes twice in autumn', () => {
  it.each([
    ['Europe/Madrid', '30 2 * * *', '2026-10-24T12:00:00Z', ['25 02:30 GMT+02:00', '26 02:30 GMT+01:00']],
    ['America/New_York', '30 1 * * *', '2026-10-31T12:00:00Z', ['01 01:30 GMT-04:00', '02 01:30 GMT-05:00']],
    [
      'Australia/Lord_Howe',
      '45 1 * * *',
      '2026-04-04T12:00:00Z',
      ['05 01:45 GMT+11:00', '06 01:45 GMT+10:30'],
    ],
  ])('%s, %s: the first time only', (zone, expression, from, expected) => {
    expect(walls(expression, zone, from, 2)).toEqual(expected)
  })

  it('an expression with * runs in both', () => {
    expect(walls('0 * * * *', 'Europe/Madrid', '2026-10-24T23:30:00Z', 3)).toEqual([
      '25 02:00 GMT+02:00',
      '25 02:00 GMT+01:00',
      '25 03:00 GMT+01:00',
    ])
  })

  it('looking back finds what looking forward finds, over a whole year', () => {
    for (const [expression, zone] of [
      ['30 2 * * *', 'Europe/Madrid'],
      ['0 * * * *', 'America/New_York'],
      ['15 2 * * 0', 'Australia/Lord_Howe'],
    ] as const) {
      const when = cron(expression, zone)
      const from = Date.UTC(2026, 0, 1)
      const forward = list(when, from, 10_000).filter((at) => at < Date.UTC(2027, 0, 1))
      const back = when.last(10_000, from, Date.UTC(2027, 0, 1)).toReversed()
      expect(back).toEqual(forward)
    }
  })
})

it('J1: intervals count from an occurrence, forwards and back', () => {
  const when = interval(1000)
  expect(when.next(5000)).toBe(6000)
  expect(when.last(3, 5000, 9000)).toEqual([8000, 7000, 6000])
  expect(when.last(3, 5000, 9001)).toEqual([9000, 8000, 7000])
  expect(when.last(3, 5000, 6000)).toEqual([])
  expect(when.last(3, 5000, 2000)).toEqual([])
})

describe('J1: what cannot be is refused where it is declared, by name', () => {
  const bot = new Bot({ provider: new FakeProvider(), scheduler: true })
  const nothing = () => undefined
  it.each([
    [
      'a cron expression',
      () => bot.schedule('61 * * * *', { id: 'a' }, nothing),
      /"61 \* \* \* \*" cannot be read/,
    ],
    [
      'one that never comes',
      () => bot.schedule('0 0 31 2 *', { id: 'a' }, nothing),
      /"0 0 31 2 \*" never comes/,
    ],
    [
      'a time zone',
      () => bot.schedule('0 9 * * *', { id: 'a', timeZone: 'Mars/Base' }, nothing),
      /"timeZone" is "Mars\/Base".*IANA/,
    ],
    ['no interval', () => bot.every(0, { id: 'a' }, nothing), /"every" is 0/],
    ['a negative interval', () => bot.every(-5, { id: 'a' }, nothing), /"every" is -5/],
    ['an empty id', () => bot.every('1m', { id: '' }, nothing), /"id" is ""/],
    [
      'a policy',
      () => bot.every('1m', { id: 'a', catchUp: 'some' as 'all' }, nothing),
      /"catchUp" is "some".*'skip', 'last', 'all'/,
    ],
    ['a negative grace', () => bot.every('1m', { id: 'a', graceMs: -1 }, nothing), /"graceMs" is -1/],
    ['no attempt', () => bot.every('1m', { id: 'a', maxAttempts: 0 }, nothing), /"maxAttempts" is 0/],
    [
      'a slip',
      () => bot.every('1m', { id: 'a', catchup: 'all' } as object, nothing),
      /no option "catchup"; did you mean "catchUp"/,
    ],
    [
      'a policy without an id',
      () => bot.every('1m', { catchUp: 'all' }, nothing),
      /"catchUp" of a task is for durable ones/,
    ],
  ])('%s', (_what, declare, words) => {
    expect(declare).toThrow(ConfigError)
    expect(declare).toThrow(words)
  })

  it('a second task of one id; the name is free again once the first is ended', () => {
    const task = bot.every('1m', { id: 'twice' }, nothing)
    expect(() => bot.schedule('0 9 * * *', { id: 'twice' }, nothing)).toThrow(/Two tasks have the id "twice"/)
    task.stop()
    bot.every('1m', { id: 'twice' }, nothing).stop()
  })
})
