/** Leader-only jobs over applications that share a hub (N6). */
import { expect, it } from '@jest/globals'
import { Injectable } from '@nestjs/common'
import { Cron, Interval, ScheduleModule, Timeout } from '@nestjs/schedule'
import { MemoryStore } from '@botmesh/core'
import { MemoryCoordinationHub, MemoryCoordinator } from '@botmesh/core/testing'
import { BotmeshModule, LeaderOnly } from '../src/index.js'
import { runApp, until } from './test-app.js'
import { TestProvider } from './test-provider.js'

@Injectable()
class Jobs {
  ran: string[] = []
  hold: Promise<void> | null = null

  @LeaderOnly('cron')
  @Cron('* * * * * *')
  cron() {
    this.ran.push('cron')
  }
  @Interval(30)
  @LeaderOnly('interval')
  async interval() {
    this.ran.push('interval')
    await this.hold
  }
  @LeaderOnly('timeout')
  @Timeout(300)
  timeout() {
    this.ran.push('timeout')
  }
}

function app(hub: MemoryCoordinationHub, replicaId: string) {
  const coordinator = new MemoryCoordinator({ hub, replicaId, leaseMs: 1000 })
  const running = runApp({
    imports: [
      ScheduleModule.forRoot(),
      BotmeshModule.forRoot({
        provider: new TestProvider(),
        store: new MemoryStore(),
        coordination: { coordinator },
      }),
    ],
    providers: [Jobs],
  })
  return running.then(({ app: created }) => ({ app: created, jobs: created.get(Jobs), coordinator }))
}

const count = (jobs: Jobs, name: string) => jobs.ran.filter((one) => one === name).length

it('N6: of two applications one runs the jobs; after its orderly stop the other goes on at once', async () => {
  const hub = new MemoryCoordinationHub()
  const a = await app(hub, 'a')
  const b = await app(hub, 'b')
  await until(
    () => count(a.jobs, 'interval') >= 5 && count(a.jobs, 'cron') >= 1 && count(a.jobs, 'timeout') >= 1,
  )
  expect(count(a.jobs, 'timeout')).toBe(1)
  expect(b.jobs.ran).toEqual([])
  const began = performance.now()
  await a.app.close()
  const before = a.jobs.ran.length
  await until(() => count(b.jobs, 'interval') > 0)
  expect(performance.now() - began).toBeLessThan(900)
  expect(a.jobs.ran).toHaveLength(before)
})

it('N6: a dead leader is succeeded after its lease', async () => {
  const hub = new MemoryCoordinationHub()
  const a = await app(hub, 'a')
  const b = await app(hub, 'b')
  await until(() => count(a.jobs, 'interval') > 0)
  a.coordinator.crash()
  await until(() => count(b.jobs, 'interval') > 0)
  const before = a.jobs.ran.length
  await until(() => count(b.jobs, 'interval') > 3)
  expect(a.jobs.ran).toHaveLength(before)
})

it('N5, N6: the leadership is kept until a running job has ended', async () => {
  const hub = new MemoryCoordinationHub()
  const a = await app(hub, 'a')
  let release: () => void = () => undefined
  a.jobs.hold = new Promise((resolve) => (release = resolve))
  await until(() => count(a.jobs, 'interval') > 0)
  const b = await app(hub, 'b')
  const closing = a.app.close()
  await new Promise((resolve) => setTimeout(resolve, 150))
  expect(b.jobs.ran).toEqual([])
  release()
  await closing
  await until(() => count(b.jobs, 'interval') > 0)
})

it('N6: without coordination the only process is its own leader', async () => {
  const { app: created } = await runApp({
    imports: [ScheduleModule.forRoot(), BotmeshModule.forRoot({ provider: new TestProvider() })],
    providers: [Jobs],
  })
  await until(() => count(created.get(Jobs), 'interval') > 1)
})
