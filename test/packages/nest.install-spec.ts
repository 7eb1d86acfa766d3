/** A Nest application that installs the packages: Nest 11 as CommonJS at both ends of the peer ranges, Nest 12. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import { GraphApiDouble, metaText, metaWebhookBody, signMetaBody } from '../doubles/graph-api.js'
import { spawnReplica, waitFor } from '../support/index.js'
import { Application } from './support/application.js'
import { documentedJestSettings, NEST_11_JEST, NEST_11_TSCONFIG } from './support/nest-11.js'
import { newNestApplication } from './support/nest-12.js'

const SHOP = new URL('./fixtures/shop/', import.meta.url)
const VITEST = new URL('./fixtures/vitest/', import.meta.url)
const BOTMESH = ['@botmesh/core', '@botmesh/meta', '@botmesh/nestjs']
const PHONE = '106540352242922'

/** Nest itself, and the parts of it that are versioned apart. */
function nest(range: string, apart: { emitter: string; schedule: string; terminus: string }): string[] {
  return [
    ...['common', 'core', 'platform-express', 'testing'].map((one) => `${one}@${range}`),
    // Those before 11.0.3 ask for Nest 10.
    `platform-fastify@${range === '11.0.0' ? '11.0.3' : range}`,
    ...[`event-emitter@${apart.emitter}`, `schedule@${apart.schedule}`, `terminus@${apart.terminus}`],
  ].map((one) => `@nestjs/${one}`)
}

/** As one writes relative imports in CommonJS. */
const extensionless = (text: string) => text.replace(/from '(\.[^']*)\.js'/g, "from '$1'")

/** Builds it, and runs it on both HTTP platforms. */
async function expectToWork(app: Application): Promise<void> {
  app.write('tsconfig.json', JSON.stringify(NEST_11_TSCONFIG))
  expect(await app.tsc('-p', 'tsconfig.json', '--ignoreDeprecations', app.deprecations)).toEqual({
    code: 0,
    output: '',
  })
  for (const platform of ['express', 'fastify']) await expectToServe(app, platform)
}

/** A flow over signed webhooks, events, a leader-only job, health, Terminus, and an orderly end. */
async function expectToServe(app: Application, platform: string): Promise<void> {
  const graph = await new GraphApiDouble({ accessToken: 'access-token' }).listen()
  try {
    const env = { PLATFORM: platform, GRAPH_URL: graph.url, NO_COLOR: '1' }
    const process = spawnReplica(`${app.dir}/dist/main.js`, env)
    const { url } = (await process.next('listening', { timeoutMs: 30_000 })) as unknown as { url: string }
    const get = async (path: string) => {
      const reply = await fetch(`${url}${path}`)
      return { status: reply.status, body: (await reply.json()) as Record<string, unknown> }
    }
    const write = async (id: string, text: string) => {
      const body = metaWebhookBody(PHONE, [metaText('34600111222', id, text)])
      const headers = {
        'content-type': 'application/json',
        'x-hub-signature-256': signMetaBody(body, 'app-secret'),
      }
      const reply = await fetch(`${url}/webhooks/meta/shop`, { method: 'POST', headers, body })
      expect(reply.status).toBe(200)
    }
    await write('m1', 'order')
    await graph.waitForSends(1)
    await write('m2', 'M')
    await graph.waitForSends(2)
    expect(graph.sends.map(({ body }) => body.text)).toMatchObject([
      { body: 'Which size?' },
      { body: 'Size M is noted' },
    ])
    await waitFor(async () => (await get('/api/report')).body.runs !== 0, { what: 'the job ran' })
    await waitFor(async () => ((await get('/api/report')).body.messages as string[]).length === 2, {
      what: 'both messages reached the listener',
    })
    expect(await get('/health')).toMatchObject({ status: 200, body: { status: 'ok' } })
    expect(await get('/health/ready')).toMatchObject({ status: 200 })
    expect(await get('/api/checked')).toMatchObject({ status: 200, body: { status: 'ok' } })
    // In order, then by the signal again, as Nest ends a process.
    expect(await process.terminate()).toEqual({ code: null, signal: 'SIGTERM' })
  } finally {
    await graph.close()
  }
}

describe('Nest 11, CommonJS', () => {
  it('N1–N6: at the end of the peer ranges, with TypeScript 5, on Express and Fastify; and its own ts-jest', async () => {
    const [plain, withFiles] = documentedJestSettings()
    const app = new Application({ type: 'commonjs', manifest: { jest: { ...NEST_11_JEST, ...plain } } })
    await app.install(
      ...nest('^11', { emitter: '^3', schedule: '^6', terminus: '^11' }),
      ...['reflect-metadata@^0.2.2', 'rxjs@^7.8.1', 'typescript@^5.7.3', '@types/node@^22'],
      ...['jest@^30', 'ts-jest@^29.2.5', '@swc/core', '@swc/jest'],
      ...[...BOTMESH, '@botmesh/redis-store', '@botmesh/webchat'],
    )
    app.copy(SHOP, 'src', extensionless)
    await expectToWork(app)
    expect(await app.jest()).toEqual({ code: 0, output: expect.stringContaining('Tests:       1 passed') })

    // The packages that read files of their own take the second setting.
    app.write(
      'src/files.spec.ts',
      `import { RedisStore } from '@botmesh/redis-store'
import { WebchatProvider } from '@botmesh/webchat'
test('load', () => expect([typeof RedisStore, typeof WebchatProvider]).toEqual(['function', 'function']))
`,
    )
    const { transform, ...rest } = { ...withFiles } as { transform: Record<string, unknown> }
    const settings = { ...NEST_11_JEST, ...rest, transform: { ...transform, ...NEST_11_JEST.transform } }
    app.write('jest.files.json', JSON.stringify(settings))
    expect(await app.jest('--config', 'jest.files.json')).toEqual({
      code: 0,
      output: expect.stringContaining('Tests:       2 passed'),
    })
  })

  it('N1–N6: at the beginning of the peer ranges', async () => {
    const app = new Application({ type: 'commonjs' })
    await app.install(
      ...nest('11.0.0', { emitter: '3.0.0', schedule: '5.0.0', terminus: '11.0.0' }),
      ...['reflect-metadata@0.1.13', 'rxjs@7.2.0', '@types/node@20', ...BOTMESH],
    )
    expect(app.version('@nestjs/core')).toBe('11.0.0')
    app.copy(SHOP, 'src', extensionless)
    await expectToWork(app)
  })
})

describe('Nest 12, ES modules', () => {
  it('N1–N6: the application is the same', async () => {
    const app = new Application({ type: 'module' })
    await app.install(
      ...nest('^12', { emitter: '^12', schedule: '^12', terminus: '^12' }),
      ...['reflect-metadata@^0.2.2', 'rxjs@^7.8.1', '@types/node@20', ...BOTMESH],
    )
    app.copy(SHOP, 'src')
    await expectToWork(app)
  })

  it('N1, K1, L1: as `nest new` makes it, its Vitest runs two replicas, of which one dies; nothing is set for it', async () => {
    const { wanted, files } = await newNestApplication()
    const app = new Application({ type: 'module' })
    await app.install(...wanted, '@botmesh/core', '@botmesh/nestjs')
    for (const [path, text] of Object.entries(files)) app.write(path, text)
    for (const [folder, file] of [
      [SHOP, 'order.flow.ts'],
      [VITEST, 'replicas.spec.ts'],
    ] as const)
      app.write(`src/${file}`, readFileSync(new URL(file, folder), 'utf8'))
    // The application's own test beside ours; and its compiler takes both.
    expect(await app.node(['node_modules/vitest/vitest.mjs', 'run'], { NO_COLOR: '1' })).toEqual({
      code: 0,
      output: expect.stringMatching(/Test Files {2}2 passed[\s\S]*Tests {2}2 passed/),
    })
    expect(await app.tsc('-p', 'tsconfig.json', '--noEmit')).toEqual({ code: 0, output: '' })
  })
})
