/** Durable tasks over replicas of one process, on a clock that the test moves: deaths, freezes, failures, stops. */
import { afterEach, describe, expect, it } from '@jest/globals'
import {
  LeaseLostError,
  StoreError,
  TaskFailedError,
  type Bot,
  type BotConfig,
  type SchedulerOptions,
  type TaskContext,
} from '../../src/index.js'
import { Mesh, type Replica } from '../bot/support/mesh.js'
import { kill } from '../bot/support/timeouts.js'

const LEASE_MS = 15_000
const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** Where the tests' clock starts. */
const START = Date.UTC(2030, 0, 1)

interface Run {
  by: string
  due: number
  at: number
  until: number | null
  attempt: number
  fence: number
}

let mesh: Mesh
let runs: Run[]
/** Leaderships are the coordinator's, or leases of the store. */
const PLACES = ['coordinator', 'leases'] as const

afterEach(async () => {
  for (const { clock } of mesh.replicas) clock.resume()
  await mesh.stop()
})

interface Plan {
  scheduler?: SchedulerOptions
  place?: (typeof PLACES)[number]
  leaseMs?: number
}

/** Replicas of a bot with these tasks. */
async function replicas(count: number, define: (bot: Bot) => void, plan: Plan = {}): Promise<Replica[]> {
  runs = []
  const config = (): Partial<BotConfig> => ({
    scheduler: { ...plan.scheduler, ...(plan.place === 'leases' ? { lease: mesh.store.leases() } : {}) },
  })
  const options: { leaseMs: number; config?: Partial<BotConfig> } = { leaseMs: plan.leaseMs ?? LEASE_MS }
  mesh = new Mesh(define, options)
  options.config = config()
  const all: Replica[] = []
  for (let n = 0; n < count; n += 1) all.push(await mesh.add())
  return all
}

/** A task that notes what it does, and takes that long. */
function noting(bot: Bot, lastsMs: (task: TaskContext) => number = () => 0) {
  return async (task: TaskContext): Promise<void> => {
    const { attempt, fence } = task
    const run: Run = {
      by: bot.name,
      due: +task.occurrence - START,
      at: mesh.clock.now() - START,
      until: null,
      attempt,
      fence,
    }
    runs.push(run)
    const ms = lastsMs(task)
    if (ms > 0) await sleep(bot, ms, task.signal)
    run.until = mesh.clock.now() - START
  }
}

/** By the replica's own clock: one that is frozen or dead does not wake. */
function sleep(bot: Bot, ms: number, signal?: AbortSignal): Promise<void> {
  const clock = mesh.replicas.find((replica) => replica.bot === bot)?.clock
  return new Promise((resolve, reject) => {
    clock?.setTimeout(resolve, ms)
    signal?.addEventListener('abort', () => reject(signal.reason as Error))
  })
}

const due = () => runs.map((run) => run.due / MINUTE)
const leader = () => mesh.replicas.find(({ bot }) => bot.name === runs.at(-1)?.by) as Replica
const errors = () => mesh.replicas.flatMap((replica) => replica.errors)

describe.each(PLACES)('scenario 32, J1: three replicas, led through %s', (place) => {
  it('each occurrence runs once, on one replica; after the death of the leader the next goes on, and none is missed', async () => {
    await replicas(3, (bot) => bot.schedule('* * * * *', { id: 'report' }, noting(bot)), { place })
    await mesh.clock.advance(5 * MINUTE + 10_000)
    expect(due()).toEqual([1, 2, 3, 4, 5])
    expect(new Set(runs.map(({ by }) => by)).size).toBe(1)
    const first = leader()
    // Two seconds before the next one: it falls between the death and the next election.
    await mesh.clock.advance(48_000)
    kill(first)
    await mesh.clock.advance(2 * MINUTE)
    expect(due()).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(leader()).not.toBe(first)
    const late = runs[5]
    expect((late?.at ?? 0) - (late?.due ?? 0)).toBeLessThan(LEASE_MS * 1.5)
    expect(late?.fence).toBeGreaterThan(runs[4]?.fence ?? Infinity)
    expect(errors()).toEqual([])
  })

  it('a run whose replica died is taken over, as a further attempt, and is not over before', async () => {
    await replicas(
      3,
      (bot) =>
        bot.schedule(
          '* * * * *',
          { id: 'report' },
          noting(bot, () => 20_000),
        ),
      { place },
    )
    await mesh.clock.advance(MINUTE + 5000)
    kill(leader())
    await mesh.clock.advance(MINUTE - 5000)
    const [dead, taken] = runs
    expect(taken).toMatchObject({ due: MINUTE, attempt: 2 })
    expect(taken?.by).not.toBe(dead?.by)
    expect(taken?.at).toBeGreaterThan(MINUTE + 5000)
    await mesh.clock.advance(MINUTE)
    expect(due()).toEqual([1, 1, 2, 3])
    expect(errors()).toEqual([])
  })

  it('scenario 33: a task longer than its lease keeps it, and nobody else begins', async () => {
    await replicas(
      3,
      (bot) =>
        bot.schedule(
          '0 * * * *',
          { id: 'long' },
          noting(bot, () => 10 * LEASE_MS),
        ),
      { place },
    )
    await mesh.clock.advance(2 * HOUR + 20 * LEASE_MS)
    expect(runs).toMatchObject([
      { due: HOUR, attempt: 1, until: HOUR + 10 * LEASE_MS },
      { due: 2 * HOUR, attempt: 1, until: 2 * HOUR + 10 * LEASE_MS },
    ])
    expect(errors()).toEqual([])
  })

  it('scenario 33: a frozen owner is told when it thaws; what it would write is refused by its fence', async () => {
    /** As a database would: the highest fence that has written decides. */
    const resource = { fence: 0, by: '' }
    const refused: string[] = []
    await replicas(
      3,
      (bot) =>
        bot.schedule('0 * * * *', { id: 'pay' }, async (task) => {
          await noting(bot)(task)
          // Does not listen to its signal.
          await sleep(bot, LEASE_MS)
          if (task.fence < resource.fence) return void refused.push(bot.name)
          Object.assign(resource, { fence: task.fence, by: bot.name })
        }),
      { place },
    )
    await mesh.clock.advance(HOUR + 1000)
    const frozen = leader()
    frozen.clock.pause()
    await mesh.clock.advance(LEASE_MS - 2000)
    await mesh.clock.advance(LEASE_MS * 2)
    const [before, after] = runs
    expect(after).toMatchObject({ due: HOUR, attempt: 2 })
    expect(after?.fence).toBeGreaterThan(before?.fence ?? Infinity)
    expect(resource.by).toBe(after?.by)
    frozen.clock.resume()
    await mesh.clock.advance(10 * MINUTE)
    expect(runs).toHaveLength(2)
    expect(resource.by).toBe(after?.by)
    await mesh.clock.advance(HOUR)
    expect(due()).toEqual([60, 60, 120])
    expect(frozen.events.map(({ name }) => name)).toContain('coordination:lease-lost')
  })

  it('an orderly stop hands over at once, and never in the middle of a run that ends in time', async () => {
    await replicas(
      2,
      (bot) =>
        bot.schedule(
          '* * * * *',
          { id: 'report' },
          noting(bot, () => 4000),
        ),
      { place },
    )
    await mesh.clock.advance(MINUTE + 1000)
    const first = leader()
    const stopping = first.bot.stop()
    await mesh.clock.advance(MINUTE + 5000)
    await stopping
    expect(runs).toMatchObject([
      { due: MINUTE, until: MINUTE + 4000, attempt: 1 },
      { due: 2 * MINUTE, attempt: 1 },
    ])
    expect(leader()).not.toBe(first)
  })

  it('a run that outlasts the stop is told, gives its occurrence back, and goes on elsewhere at once', async () => {
    await replicas(
      2,
      (bot) =>
        bot.schedule(
          '0 * * * *',
          { id: 'long' },
          noting(bot, () => 30_000),
        ),
      { place },
    )
    await mesh.clock.advance(HOUR + 1000)
    await mesh.run(leader().bot.stop())
    await mesh.clock.advance(MINUTE)
    const [cut, again] = runs
    expect(cut?.until).toBeNull()
    expect(again).toMatchObject({ due: HOUR, attempt: 1, until: (again?.at ?? 0) + 30_000 })
    // Within `drainMs` of 10 s, and with leases the third of a lease until somebody asks.
    expect(again?.at).toBeLessThan(HOUR + 1000 + 10_000 + LEASE_MS / 3)
    expect(errors()).toEqual([])
  })
})

describe('J1: failures', () => {
  it('a failed attempt is repeated after growing pauses, reported each time, and given up at last; the next comes', async () => {
    let broken = true
    await replicas(2, (bot) =>
      bot.schedule('*/10 * * * *', { id: 'flaky', maxAttempts: 3, retryMs: '2s' }, async (task) => {
        await noting(bot)(task)
        if (broken) throw new Error('no luck')
      }),
    )
    await mesh.clock.advance(10 * MINUTE + 5000)
    expect(runs.map(({ at }) => at - 10 * MINUTE)).toEqual([0, 2000])
    // The pause is kept by whoever leads next.
    kill(leader())
    await mesh.clock.advance(5 * MINUTE)
    expect(runs.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    broken = false
    await mesh.clock.advance(10 * MINUTE)
    expect(due()).toEqual([10, 10, 10, 20])
    const reported = errors() as TaskFailedError[]
    expect(reported.every((error) => error instanceof TaskFailedError)).toBe(true)
    expect(reported.map(({ details }) => [details.attempt, details.retryInMs])).toEqual([
      [1, 2000],
      [2, 4000],
      [3, null],
    ])
    expect(reported[2]?.message).toMatch(
      /"flaky", due at 2030-01-01T00:10:00.000Z, failed at attempt 3: given up/,
    )
    expect(reported[2]?.cause).toEqual(new Error('no luck'))
  })

  it('one task that hangs or fails does not hold up another', async () => {
    await replicas(1, (bot) => {
      bot.every('1m', { id: 'hangs' }, () => new Promise(() => undefined))
      bot.every('1m', { id: 'works' }, noting(bot))
    })
    await mesh.clock.advance(5 * MINUTE + 1000)
    expect(due()).toEqual([1, 2, 3, 4, 5])
  })

  it('a store that does not answer is asked again: an occurrence that has ended is not run a second time', async () => {
    const [only] = await replicas(1, (bot) =>
      bot.every(
        '1m',
        { id: 'report' },
        noting(bot, () => 1000),
      ),
    )
    const { store } = mesh
    const write = store.setCheckpointIf.bind(store)
    await mesh.clock.advance(MINUTE + 500)
    store.setCheckpointIf = () =>
      Promise.reject(new StoreError('gone', { store: 'test', operation: 'write' }))
    await mesh.clock.advance(20_000)
    store.setCheckpointIf = write
    await mesh.clock.advance(2 * MINUTE)
    expect(due()).toEqual([1, 2, 3])
    expect(only?.errors).toHaveLength(1)
  })

  it('what the store remembers and cannot be read is set aside, and said', async () => {
    const [only] = await replicas(1, (bot) => bot.every('1m', { id: 'report' }, noting(bot)))
    await mesh.clock.advance(MINUTE)
    await mesh.run(only?.bot.stop() ?? Promise.resolve())
    const key = 'task/fake%3Atest/report'
    const row = await mesh.store.getCheckpoint(key)
    expect(row?.state).toMatchObject({ plan: 'every 60000 ms', claim: null })
    if (row !== null) await mesh.store.setCheckpoint(key, { ...row, state: { settled: 'yesterday' } })
    await mesh.run(only?.bot.start() ?? Promise.resolve())
    await mesh.clock.advance(2 * MINUTE)
    expect(String(only?.errors[0])).toMatch(
      /remembers of "task\/fake%3Atest\/report" cannot be read: the task begins anew/,
    )
    expect(runs.length).toBeGreaterThan(1)
  })
})

describe('J1: over nobody’s time', () => {
  it('what fell due while all replicas were down is caught up once, or left out and told', async () => {
    const missed: object[] = []
    const [a] = await replicas(1, (bot) => {
      bot.on('task:missed', ({ id, from, to }) => missed.push({ id, from: +from - START, to: +to - START }))
      bot.schedule('*/10 * * * *', { id: 'last' }, noting(bot))
      bot.schedule('*/10 * * * *', { id: 'skip', catchUp: 'skip' }, () => void runs.push())
    })
    await mesh.clock.advance(10 * MINUTE)
    await mesh.run(a?.bot.stop() ?? Promise.resolve())
    await mesh.clock.advance(25 * MINUTE)
    await mesh.run(a?.bot.start() ?? Promise.resolve())
    await mesh.clock.advance(5000)
    expect(due()).toEqual([10, 30])
    expect(missed).toEqual([
      { id: 'last', from: 20 * MINUTE, to: 20 * MINUTE },
      { id: 'skip', from: 20 * MINUTE, to: 30 * MINUTE },
    ])
  })

  it('scenario 32: over a change of daylight saving, with the leader dying in it, no hour is run twice and none left out', async () => {
    await replicas(
      3,
      (bot) => {
        bot.schedule('30 2 * * *', { id: 'nightly', timeZone: 'Europe/Madrid' }, noting(bot))
      },
      { leaseMs: 5 * MINUTE },
    )
    for (const [day, utc] of [
      [Date.UTC(2030, 2, 30, 12), ['2030-03-31T01:00:00.000Z', '2030-04-01T00:30:00.000Z']],
      [Date.UTC(2030, 9, 26, 12), ['2030-10-27T00:30:00.000Z', '2030-10-28T01:30:00.000Z']],
    ] as const) {
      const first = runs.length === 0 ? mesh.replicas[0] : leader()
      mesh.clock.shiftWall(day - mesh.clock.now())
      await mesh.clock.advance(MINUTE)
      runs.length = 0
      await mesh.clock.advance(Date.parse(utc[0]) - 1000 - mesh.clock.now())
      kill(first as Replica)
      await mesh.clock.advance(36 * HOUR)
      expect(runs.map((run) => new Date(run.due + START).toISOString())).toEqual(utc)
      expect(leader()).not.toBe(first)
    }
  })
})

describe('J1: what a task may do', () => {
  it('it writes through the bot while it may act; afterwards that is refused (L2)', async () => {
    const late: unknown[] = []
    await replicas(2, (bot) =>
      bot.every('1h', { id: 'greet' }, async (task) => {
        await bot.send('100', `hello ${task.attempt}`)
        await sleep(bot, 2 * LEASE_MS)
        await bot.send('100', 'bye').catch((error: unknown) => late.push(error))
      }),
    )
    await mesh.clock.advance(HOUR + 1000)
    const frozen = mesh.replicas.find(({ provider }) => provider.sent.length > 0) as Replica
    frozen.clock.pause()
    await mesh.clock.advance(MINUTE)
    frozen.clock.resume()
    await mesh.clock.advance(MINUTE)
    expect(mesh.said).toEqual(['hello 1', 'hello 2', 'bye'])
    expect(late).toHaveLength(1)
    expect(late[0]).toBeInstanceOf(LeaseLostError)
  })

  it('J2: without an id it runs on every replica, and has no fence', async () => {
    const said: string[] = []
    await replicas(2, (bot) =>
      bot.every('1m', (task) => {
        said.push(`${bot.name} ${task.attempt} ${task.id}`)
        expect(() => task.fence).toThrow(/runs on every replica: give it an `id`/)
      }),
    )
    await mesh.clock.advance(MINUTE + 1000)
    expect(said.toSorted()).toEqual(['replica-0 1 null', 'replica-1 1 null'])
    expect(errors()).toEqual([])
  })
})
