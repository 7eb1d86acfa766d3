/** Jobs made while the application runs: led like decorated ones (N6). And durable tasks in an application (J1). */
import { expect, it } from '@jest/globals'
import { Inject, Injectable, type OnModuleInit } from '@nestjs/common'
import { Cron, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule'
import { Bot, ConfigError, MemoryStore } from '@botmesh/core'
import { MemoryCoordinationHub, MemoryCoordinator } from '@botmesh/core/testing'
import { BotmeshModule, LeaderJobs, LeaderOnly } from '../src/index.js'
import { runApp, until } from './test-app.js'
import { TestProvider } from './test-provider.js'

type Job = ReturnType<SchedulerRegistry['getCronJob']>

@Injectable()
class Jobs {
  readonly ran: string[] = []

  constructor(
    @Inject(SchedulerRegistry) private readonly registry: SchedulerRegistry,
    @Inject(LeaderJobs) private readonly leaderJobs: LeaderJobs,
  ) {}

  /** Only there so that the class of cron jobs, which is another package's, is at hand. */
  @Cron('0 0 1 1 *', { name: 'yearly' })
  yearly() {
    this.ran.push('yearly')
  }

  @LeaderOnly('decorated')
  decorated() {
    this.ran.push('decorated')
  }

  addAll(): void {
    const note = this.leaderJobs.wrap('dynamic', (name: string) => this.ran.push(name))
    const CronJob = this.registry.getCronJob('yearly').constructor as new (
      time: string,
      tick: () => unknown,
    ) => Job
    const cron = new CronJob('* * * * * *', () => note('cron'))
    this.registry.addCronJob('cron', cron)
    cron.start()
    this.registry.addInterval(
      'interval',
      setInterval(() => void note('interval'), 30),
    )
    this.registry.addTimeout(
      'timeout',
      setTimeout(() => void note('timeout'), 300),
    )
    this.registry.addInterval(
      'calls',
      setInterval(() => void this.decorated(), 30),
    )
  }
}

@Injectable()
class Durable implements OnModuleInit {
  readonly ran: number[] = []

  constructor(@Inject(Bot) private readonly bot: Bot) {}

  onModuleInit(): void {
    this.bot.every(50, { id: 'durable' }, (task) => void this.ran.push(task.occurrence.getTime()))
  }
}

async function app(hub: MemoryCoordinationHub, store: MemoryStore, replicaId: string) {
  const coordinator = new MemoryCoordinator({ hub, replicaId, leaseMs: 1000 })
  const { app: created } = await runApp({
    imports: [
      ScheduleModule.forRoot(),
      BotmeshModule.forRoot({
        provider: new TestProvider(),
        store,
        scheduler: true,
        coordination: { coordinator },
      }),
    ],
    providers: [Jobs, Durable],
  })
  return { app: created, jobs: created.get(Jobs), durable: created.get(Durable), coordinator }
}

const names = (jobs: Jobs) => [...new Set(jobs.ran)].toSorted()

it('N6: cron jobs, intervals and timeouts of the registry run on one of two applications, and go on on the other', async () => {
  const hub = new MemoryCoordinationHub()
  const store = new MemoryStore()
  const a = await app(hub, store, 'a')
  a.jobs.addAll()
  await until(() => names(a.jobs).length === 4)
  const b = await app(hub, store, 'b')
  b.jobs.addAll()
  const before = a.jobs.ran.length
  await until(() => a.jobs.ran.length > before + 5)
  expect(b.jobs.ran).toEqual([])
  expect(a.jobs.ran.filter((name) => name === 'timeout')).toHaveLength(1)
  a.coordinator.crash()
  // The timeout of b is over: it fell on a follower.
  await until(() => names(b.jobs).join() === 'cron,decorated,interval')
  const dead = a.jobs.ran.length
  await until(() => b.jobs.ran.length > 5)
  expect(a.jobs.ran).toHaveLength(dead)
})

it('J1: durable tasks run on one application; the other goes on where it stopped, and repeats nothing', async () => {
  const hub = new MemoryCoordinationHub()
  const store = new MemoryStore()
  const a = await app(hub, store, 'a')
  const b = await app(hub, store, 'b')
  await until(() => a.durable.ran.length > 2)
  expect(b.durable.ran).toEqual([])
  await a.app.close()
  await until(() => b.durable.ran.length > 2)
  const all = [...a.durable.ran, ...b.durable.ran]
  expect(all).toEqual([...new Set(all)].toSorted((x, y) => x - y))
})

it('N6: what cannot be wrapped is refused by name', async () => {
  const { jobs } = await app(new MemoryCoordinationHub(), new MemoryStore(), 'a')
  const leaderJobs = jobs['leaderJobs']
  const call =
    (...all: unknown[]) =>
    () =>
      Reflect.apply(Reflect.get(leaderJobs, 'wrap'), leaderJobs, all)
  expect(call('', () => 1)).toThrow(ConfigError)
  expect(call('job', 5)).toThrow(/"job" given to LeaderJobs.wrap\(\) is 5/)
  expect(call('job', () => 1, { bot: 'nobody' })).toThrow(
    /LeaderJobs.wrap\("job"\) is for a bot called "nobody"/,
  )
  expect(call('job', () => 1, { bot: '*' })).toThrow(/one bot elects, not '\*'/)
})
