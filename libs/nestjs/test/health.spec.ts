/** Health routes on real servers, alone and beside the application's own (N4). */
import { describe, expect, it } from '@jest/globals'
import { Controller, Get } from '@nestjs/common'
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus'
import { MemoryStore } from '@botmesh/core'
import { MemoryCoordinationHub, MemoryCoordinator } from '@botmesh/core/testing'
import { BotmeshHealthIndicator, BotmeshModule, type BotmeshModuleOptions } from '../src/index.js'
import { PLATFORMS, runApp, until } from './test-app.js'
import { TestProvider } from './test-provider.js'

async function get(url: string): Promise<{ status: number; body: HealthLike }> {
  const response = await fetch(url)
  return { status: response.status, body: (await response.json()) as HealthLike }
}

interface HealthLike {
  status: string
  details: Record<
    string,
    { status: string; role: string; transport: { status: string }; backend: { status: string } }
  >
}

/** A replica of an exclusive bot on a shared hub. */
function replica(
  hub: MemoryCoordinationHub,
  replicaId: string,
  health?: BotmeshModuleOptions['health'],
): BotmeshModuleOptions {
  return {
    provider: new TestProvider({ exclusive: true }),
    store: new MemoryStore(),
    coordination: { coordinator: new MemoryCoordinator({ hub, replicaId }) },
    ...(health === undefined ? {} : { health }),
  }
}

describe.each(PLATFORMS)('N4: ready-made routes on %s', (platform) => {
  it('show role, transport and backend of every bot, whatever the global prefix', async () => {
    const { url } = await runApp(
      {
        imports: [
          BotmeshModule.forRoot(replica(new MemoryCoordinationHub(), 'a')),
          BotmeshModule.forRoot({ name: 'web', provider: new TestProvider({ account: 'web' }) }),
        ],
      },
      { platform, prepare: (app) => app.setGlobalPrefix('api') },
    )
    await until(async () => (await get(`${url}/health/ready`)).status === 200)
    expect(await get(`${url}/health`)).toMatchObject({
      status: 200,
      body: {
        status: 'ok',
        details: {
          default: {
            status: 'up',
            role: 'leader',
            transport: { status: 'open' },
            backend: { status: 'live' },
          },
          web: { status: 'up', role: 'shared', transport: { status: 'open' }, backend: { status: 'none' } },
        },
      },
    })
    expect((await get(`${url}/health/live`)).status).toBe(200)
  })

  it('a standby is alive and in order, not ready; ready with standby: ready', async () => {
    const hub = new MemoryCoordinationHub()
    const leader = await runApp({ imports: [BotmeshModule.forRoot(replica(hub, 'a'))] }, { platform })
    await until(async () => (await get(`${leader.url}/health/ready`)).status === 200)
    const standby = await runApp({ imports: [BotmeshModule.forRoot(replica(hub, 'b'))] }, { platform })
    const willing = await runApp(
      { imports: [BotmeshModule.forRoot(replica(hub, 'c', { standby: 'ready' }))] },
      { platform },
    )
    expect(await get(`${standby.url}/health`)).toMatchObject({
      status: 200,
      body: { details: { default: { role: 'follower', transport: { status: 'standby' } } } },
    })
    expect((await get(`${standby.url}/health/ready`)).status).toBe(503)
    expect((await get(`${standby.url}/health/live`)).status).toBe(200)
    expect((await get(`${willing.url}/health/ready`)).status).toBe(200)
    await leader.app.close()
    await until(
      async () =>
        (await get(`${standby.url}/health/ready`)).status === 200 ||
        (await get(`${willing.url}/health`)).body.details.default?.role === 'leader',
    )
  })

  it('leaves out what the application serves itself, with a warning', async () => {
    @Controller('health')
    class Own {
      @Get() own() {
        return { mine: true }
      }
    }
    const { url, logger } = await runApp(
      { imports: [BotmeshModule.forRoot({ provider: new TestProvider() })], controllers: [Own] },
      { platform },
    )
    expect(await (await fetch(`${url}/health`)).json()).toEqual({ mine: true })
    expect((await fetch(`${url}/health/live`)).status).toBe(200)
    expect(logger.texts('warn').filter((line) => line.includes('path=/health'))).toHaveLength(1)
  })

  it('is not fooled by a route that catches everything', async () => {
    @Controller()
    class Fallback {
      @Get(platform === 'fastify' ? '*' : '*path') page() {
        return 'page'
      }
    }
    const { url } = await runApp(
      { imports: [BotmeshModule.forRoot({ provider: new TestProvider() })], controllers: [Fallback] },
      { platform },
    )
    expect((await get(`${url}/health`)).body.status).toBe('ok')
    expect(await (await fetch(`${url}/else`)).text()).toBe('page')
  })
})

it('N4: another path, and health: false', async () => {
  const moved = await runApp({
    imports: [BotmeshModule.forRoot({ provider: new TestProvider(), health: { path: '/-/bots' } })],
  })
  expect((await fetch(`${moved.url}/-/bots/ready`)).status).toBe(200)
  expect((await fetch(`${moved.url}/health`)).status).toBe(404)
  const off = await runApp({
    imports: [BotmeshModule.forRoot({ provider: new TestProvider(), health: false })],
  })
  expect((await fetch(`${off.url}/health`)).status).toBe(404)
})

it('N4: the indicator works in a Terminus controller', async () => {
  @Controller('status')
  class Status {
    constructor(
      private readonly terminus: HealthCheckService,
      private readonly bots: BotmeshHealthIndicator,
    ) {}
    @Get('ready') @HealthCheck() ready() {
      return this.terminus.check([() => this.bots.isReady('bots')])
    }
    @Get('live') @HealthCheck() live() {
      return this.terminus.check([() => this.bots.isAlive('bots')])
    }
  }
  const provider = new TestProvider()
  const { url } = await runApp({
    imports: [TerminusModule, BotmeshModule.forRoot({ provider })],
    controllers: [Status],
  })
  expect(await get(`${url}/status/ready`)).toMatchObject({
    status: 200,
    body: { status: 'ok', details: { bots: { status: 'up', bots: { default: { role: 'shared' } } } } },
  })
  provider.close('cable pulled')
  expect(await get(`${url}/status/ready`)).toMatchObject({
    status: 503,
    body: { error: { bots: { status: 'down' } } },
  })
  expect((await get(`${url}/status/live`)).status).toBe(200)
})
