/**
 * What lies in `docker/`: parsed, and compared with what it speaks of. No engine builds the image here; the steps that
 * it makes of the workspace are checked against the workspace.
 */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from '@jest/globals'
import * as apps from 'kubernetes-models/apps/v1'
import * as policy from 'kubernetes-models/policy/v1'
import * as v1 from 'kubernetes-models/v1'
import { parse, parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { settingsFrom } from '../src/settings.js'

const ROOT = new URL('../../../', import.meta.url)
const path = (name: string): string => fileURLToPath(new URL(name, ROOT))
const read = (name: string): string => readFileSync(new URL(name, ROOT), 'utf8')

/** What of the bot's own times the manifests have to leave room for. */
const DRAIN_MS = 10_000

/** Variables that the shop's README lists, and those that Node and the image know. */
function knownVariables(): Set<string> {
  const table = read('apps/tienda/README.md')
  const names = [...table.matchAll(/`([A-Z][A-Z_]+)`/g)].map(([, name]) => name ?? '')
  return new Set([...names, 'NODE_ENV', 'WHATSAPP_WEB_FOLDER'])
}

const seconds = (text: string): number => Number(/^(\d+)s$/.exec(text)?.[1])

describe('O1: the image', () => {
  const lines = read('docker/Dockerfile')
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const lastStage = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')))

  it('runs unprivileged, with a health check, and stops on SIGTERM', () => {
    expect(lastStage).toContain('USER node')
    expect(lastStage.findIndex((line) => line.startsWith('USER'))).toBeLessThan(
      lastStage.findIndex((line) => line.startsWith('CMD')),
    )
    expect(lastStage.some((line) => line.startsWith('HEALTHCHECK '))).toBe(true)
    expect(lastStage).toContain('STOPSIGNAL SIGTERM')
  })

  it('starts what a build makes, and copies only what exists', () => {
    const start = lastStage.find((line) => line.startsWith('CMD ')) ?? ''
    const [, script] = z.tuple([z.literal('node'), z.string()]).parse(JSON.parse(start.slice(4)))
    expect(existsSync(path(script.replace('/dist/', '/src/').replace(/\.js$/, '.ts')))).toBe(true)
    for (const line of lines.filter((one) => one.startsWith('COPY ') && !one.includes('--from'))) {
      for (const source of line.split(/\s+/).slice(1, -1))
        expect([source, existsSync(path(source))]).toEqual([source, true])
    }
  })

  it('takes no secrets, no history and no installed packages from the machine that builds it', () => {
    const ignored = read('docker/Dockerfile.dockerignore').split('\n')
    expect(ignored).toEqual(
      expect.arrayContaining(['.git', '**/node_modules', '**/dist', '.env*', 'sessions']),
    )
  })

  it('its health check answers by exit code, and says why', async () => {
    let status = 200
    const server = createServer((_, response) => response.writeHead(status).end())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const check = (): Promise<{ stderr: string }> =>
      promisify(execFile)(process.execPath, [path('docker/health-check.mjs')], {
        env: { ...process.env, PORT: String(port) },
      })
    await check()
    status = 503
    await expect(check()).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('503') })
    await new Promise((resolve) => server.close(resolve))
    await expect(check()).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('ECONNREFUSED') })
  })
})

const composeFile = z.object({
  name: z.string().optional(),
  services: z.record(
    z.string(),
    z.strictObject({
      image: z.string().optional(),
      build: z.strictObject({ context: z.string(), dockerfile: z.string() }).optional(),
      command: z.array(z.string()).optional(),
      environment: z.record(z.string(), z.string()).optional(),
      ports: z.array(z.string()).optional(),
      volumes: z.array(z.string()).optional(),
      healthcheck: z.record(z.string(), z.unknown()).optional(),
      depends_on: z.unknown().optional(),
      restart: z.string().optional(),
      stop_grace_period: z.string().optional(),
      deploy: z
        .strictObject({
          replicas: z.number(),
          update_config: z.record(z.string(), z.unknown()).optional(),
          rollback_config: z.record(z.string(), z.unknown()).optional(),
          restart_policy: z.record(z.string(), z.unknown()).optional(),
        })
        .optional(),
    }),
  ),
  volumes: z.record(z.string(), z.unknown()),
})

describe('O1: Compose', () => {
  const files = ['docker/compose.yaml', 'docker/compose.rolling.yaml']
  it.each(files)('%s: two replicas with a shared session volume, and a Redis that evicts nothing', (name) => {
    const file = composeFile.parse(parse(read(name)))
    const { bot, redis } = file.services
    expect(bot?.deploy?.replicas).toBeGreaterThanOrEqual(2)
    expect(bot?.volumes).toContain('sessions:/app/sessions')
    expect(Object.keys(file.volumes)).toContain('sessions')
    expect(redis?.command?.join(' ')).toContain('--maxmemory-policy noeviction')
    expect(seconds(bot?.stop_grace_period ?? '') * 1000).toBeGreaterThan(DRAIN_MS)
    const known = knownVariables()
    for (const variable of Object.keys(bot?.environment ?? {})) expect(known).toContain(variable)
    expect(() => settingsFrom(bot?.environment ?? {})).not.toThrow()
    for (const volume of Object.values(file.services).flatMap((one) => one.volumes ?? [])) {
      if (volume.startsWith('./')) expect(existsSync(path(`docker/${volume.split(':')[0]}`))).toBe(true)
    }
  })

  it('builds from the root of the checkout', () => {
    const { build } = composeFile.parse(parse(read('docker/compose.yaml'))).services.bot ?? {}
    expect(build).toEqual({ context: '..', dockerfile: 'docker/Dockerfile' })
  })

  it('a rolling deploy starts the next replica before it stops one, and goes back if it is not ready', () => {
    const { bot } = composeFile.parse(parse(read('docker/compose.rolling.yaml'))).services
    expect(bot?.deploy?.update_config).toMatchObject({
      order: 'start-first',
      parallelism: 1,
      failure_action: 'rollback',
    })
    expect(bot?.healthcheck?.test).toEqual(['CMD', 'node', 'health-check.mjs', '/health/ready'])
  })

  it('rolling-deploy.sh is a shell script that parses', async () => {
    await promisify(execFile)('sh', ['-n', path('docker/rolling-deploy.sh')])
  })
})

const MODELS: Record<string, new (data: never) => { validate(): void }> = {
  'apps/v1 Deployment': apps.Deployment,
  'apps/v1 StatefulSet': apps.StatefulSet,
  'policy/v1 PodDisruptionBudget': policy.PodDisruptionBudget,
  'v1 Service': v1.Service,
  'v1 Secret': v1.Secret,
  'v1 PersistentVolumeClaim': v1.PersistentVolumeClaim,
}

interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string }
  spec?: Record<string, unknown>
}

function manifests(name: string): Manifest[] {
  return parseAllDocuments(read(`docker/kubernetes/${name}`)).map((document) => document.toJS() as Manifest)
}

const deployment = z.object({
  spec: z.object({
    replicas: z.number().min(2),
    selector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
    strategy: z.object({ rollingUpdate: z.object({ maxUnavailable: z.literal(0), maxSurge: z.number() }) }),
    template: z.object({
      metadata: z.object({ labels: z.record(z.string(), z.string()) }),
      spec: z.object({
        terminationGracePeriodSeconds: z.number(),
        securityContext: z.object({ runAsNonRoot: z.literal(true) }),
        containers: z.tuple([
          z.object({
            env: z.array(
              z.object({
                name: z.string(),
                value: z.string().optional(),
                valueFrom: z.record(z.string(), z.unknown()).optional(),
              }),
            ),
            lifecycle: z
              .object({ preStop: z.object({ exec: z.object({ command: z.array(z.string()) }) }) })
              .optional(),
            readinessProbe: z.object({ httpGet: z.object({ path: z.literal('/health/ready') }) }),
            livenessProbe: z.object({ httpGet: z.object({ path: z.literal('/health/live') }) }),
          }),
        ]),
      }),
    }),
  }),
})

describe('O1: Kubernetes', () => {
  it.each(readdirSync(new URL('docker/kubernetes/', ROOT)))('%s is what the API accepts', (name) => {
    for (const manifest of manifests(name)) {
      const Model = MODELS[`${manifest.apiVersion} ${manifest.kind}`]
      if (!Model) throw new Error(`no model for ${manifest.apiVersion} ${manifest.kind}`)
      new Model(manifest as never).validate()
    }
  })

  const bots = ['webhook-bot', 'leader-standby-bot']
  it.each(bots)('N4, scenario 26: %s rolls out without a gap: probes, grace, disruption budget', (name) => {
    const all = manifests(`${name}.yaml`)
    const { spec } = deployment.parse(all.find((one) => one.kind === 'Deployment'))
    const pod = spec.template.spec
    const [container] = pod.containers
    const sleep = Number(container.lifecycle?.preStop.exec.command[1] ?? 0)
    expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThan(DRAIN_MS + sleep * 1000)
    const known = knownVariables()
    for (const variable of container.env) expect(known).toContain(variable.name)
    const budget = all.find((one) => one.kind === 'PodDisruptionBudget')
    expect(budget?.spec).toEqual({ minAvailable: 1, selector: { matchLabels: spec.selector.matchLabels } })
    expect(spec.template.metadata.labels).toMatchObject(spec.selector.matchLabels)
  })

  it('scenario 26: standbys count as ready, or a rollout with maxUnavailable 0 would wait for ever', () => {
    const { spec } = deployment.parse(
      manifests('leader-standby-bot.yaml').find((one) => one.kind === 'Deployment'),
    )
    const env = Object.fromEntries(
      spec.template.spec.containers[0].env.map(({ name, value }) => [name, value]),
    )
    expect(settingsFrom(env).healthStandby).toBe('ready')
  })
})

describe('Z9: where WhatsApp Web is configured, the pairing page gets its password from outside', () => {
  it('Compose: from the environment, absent by default', () => {
    const { environment = {} } = composeFile.parse(parse(read('docker/compose.yaml'))).services.bot ?? {}
    expect(environment['WHATSAPP_WEB_SESSION']).toBeDefined()
    expect(environment['PAIRING_PASSWORD']).toBe('${PAIRING_PASSWORD:-}')
  })

  it('Kubernetes: from the secret, which names it; the manifest has no value', () => {
    const found = manifests('leader-standby-bot.yaml').find((one) => one.kind === 'Deployment')
    const [{ env }] = deployment.parse(found).spec.template.spec.containers
    expect(env.map(({ name }) => name)).toContain('WHATSAPP_WEB_SESSION')
    const secretKeyRef = { name: 'tienda-pairing', key: 'PAIRING_PASSWORD', optional: true }
    expect(env.find(({ name }) => name === 'PAIRING_PASSWORD')).toEqual({
      name: 'PAIRING_PASSWORD',
      valueFrom: { secretKeyRef },
    })
    const secretNamed = (name: string) =>
      z.object({
        metadata: z.object({ name: z.literal(name) }),
        stringData: z.record(z.string(), z.string()),
      })
    const [shared, pairing] = z
      .tuple([secretNamed('tienda'), secretNamed(secretKeyRef.name)])
      .parse(manifests('secret.example.yaml'))
    // The webhook bot reads the first one alone, and has no WhatsApp Web.
    expect(() => settingsFrom(shared.stringData)).not.toThrow()
    const leader = { ...shared.stringData, ...pairing.stringData, WHATSAPP_WEB_SESSION: 'tienda' }
    expect(settingsFrom(leader)).toMatchObject({ pairingPassword: pairing.stringData[secretKeyRef.key] })
  })
})

describe('O1: PM2', () => {
  it('two replicas with ports and names of their own, that say when they serve and have time to drain', () => {
    const config: unknown = createRequire(import.meta.url)(path('docker/pm2/ecosystem.config.cjs'))
    const { apps: processes } = z
      .object({
        apps: z.array(
          z.object({
            script: z.string(),
            exec_mode: z.literal('fork'),
            wait_ready: z.literal(true),
            kill_timeout: z.number().gt(DRAIN_MS),
            env: z.record(z.string(), z.string().optional()),
          }),
        ),
      })
      .parse(config)
    expect(new Set(processes.map(({ env }) => env.PORT)).size).toBe(processes.length)
    expect(new Set(processes.map(({ env }) => env.REPLICA_ID)).size).toBe(processes.length)
    const known = knownVariables()
    for (const { env, script } of processes) {
      for (const variable of Object.keys(env)) expect(known).toContain(variable)
      expect(existsSync(script.replace('/dist/', '/src/').replace(/\.js$/, '.ts'))).toBe(true)
    }
  })
})
