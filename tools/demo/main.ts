/** The demo itself; see tools/demo.mjs for its arguments. Starts everything, and ends everything that it started. */
import { randomBytes } from 'node:crypto'
import { freePort } from '../servers/port.mjs'
import { provideBackend, freshPrefix, type DemoBackend } from './backend.js'
import { startBalancer } from './balancer.mjs'
import { DemoConsole } from './console.js'
import { Mesh } from './mesh.js'
import { replay } from './replay.js'
import { ReplicaInProcess, loadShop } from './replica-in-process.js'
import { ReplicaProcess } from './replica-process.js'
import type { DemoReplica, OnEvent } from './replica.js'
import { readSettings, type DemoSettings } from './settings.mjs'

const NAMES = ['a', 'b', 'c']
const print = (line: string) => process.stdout.write(`${line}\n`)

async function main(): Promise<number> {
  const settings = readSettings(process.argv.slice(2))
  const backend = await provideBackend(settings.inProcess, print)
  try {
    return settings.replay
      ? await replay({ settings, backend, start: startMesh, print })
      : await chat(settings, backend)
  } finally {
    await backend.stop()
  }
}

/** Starts the replicas and the balancer. @param extra environment of the replicas besides the usual. */
export async function startMesh(
  settings: DemoSettings,
  backend: DemoBackend,
  extra: Record<string, string>,
  onEvent: OnEvent,
): Promise<Mesh> {
  const env = {
    PREFIX: freshPrefix(),
    LEASE_MS: String(settings.leaseMs),
    WEBCHAT_SECRET: randomBytes(24).toString('hex'),
    ...(backend.redisUrl === null ? {} : { REDIS_URL: backend.redisUrl }),
    ...extra,
  }
  const onLine = (name: string, line: string) => (settings.verbose ? print(`  ${name}| ${line}`) : undefined)
  print(`  Starting three replicas, ${backend.what} …`)
  const replicas: DemoReplica[] = []
  if (backend.redisUrl === null) {
    const tienda = await loadShop()
    const mesh = tienda.createMesh()
    for (const name of NAMES) replicas.push(new ReplicaInProcess(name, tienda, mesh, env, onEvent))
  } else {
    for (const name of NAMES) replicas.push(new ReplicaProcess(name, env, onEvent, onLine))
  }
  const balancer = await startBalancer({ port: await portFor(settings), answerMs: 3000, home: '/chat' })
  const mesh = new Mesh(replicas, balancer)
  try {
    await mesh.start()
  } catch (error) {
    await mesh.stop()
    if (process.env.REDIS_URL && backend.redisUrl === process.env.REDIS_URL)
      print('  They were given the Redis of REDIS_URL; without that variable the demo starts its own.')
    throw error
  }
  return mesh
}

/** The wanted port if it is free; another one rather than none. */
async function portFor(settings: DemoSettings): Promise<number> {
  if (settings.replay || settings.port === 0) return 0
  try {
    const probe = await startBalancer({ port: settings.port })
    await probe.stop()
    return settings.port
  } catch {
    const port = await freePort()
    print(`  Port ${settings.port} is taken: ${port} instead.`)
    return port
  }
}

async function chat(settings: DemoSettings, backend: DemoBackend): Promise<number> {
  let quit = () => {}
  const quitting = new Promise<void>((resolve) => {
    quit = resolve
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, quit)
  let show: OnEvent = () => {}
  const mesh = await startMesh(settings, backend, { DURABILITY: '1' }, (event) => show(event))
  const shown = new DemoConsole(mesh, print, quit)
  show = (event) => shown.show(event)
  shown.greet(backend.what)
  shown.listen()
  await quitting
  print('\n  The replicas drain …')
  await mesh.stop()
  return 0
}

try {
  process.exitCode = await main()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
} finally {
  process.stdin.pause()
  if (process.stdin.isTTY) process.stdin.setRawMode(false)
}
