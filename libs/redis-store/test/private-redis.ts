/** A private redis-server for tests: its own port and directory, ended by its own pid. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'

export interface PrivateRedis {
  readonly port: number
  readonly url: string
  readonly process: ChildProcess
  /** A plain client for looking behind the scenes; closed by `stop`. */
  readonly admin: Redis
  signal(name: NodeJS.Signals): void
  /** Kills it and starts it again, empty, on the same port. */
  restart(): Promise<void>
  /** Kills it; `restart` brings it back. */
  kill(): Promise<void>
  stop(): Promise<void>
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

async function launch(port: number, directory: string, more: string[]): Promise<ChildProcess> {
  const settings = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    directory,
    '--save',
    '',
    '--appendonly',
    'no',
  ]
  const child = spawn('redis-server', [...settings, ...more], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  await new Promise<void>((resolve, reject) => {
    const look = (data: Buffer): void => {
      output += data.toString()
      if (output.includes('Ready to accept connections')) resolve()
    }
    child.stdout?.on('data', look)
    child.stderr?.on('data', look)
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`redis-server ended with ${code}: ${output}`)))
  })
  child.removeAllListeners('exit')
  return child
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

/** @param more arguments of redis-server. */
export async function startRedis(...more: string[]): Promise<PrivateRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'botmesh-redis-'))
  const port = await freePort()
  let child = await launch(port, directory, more)
  const admin = new Redis(port, '127.0.0.1', {
    lazyConnect: true,
    retryStrategy: () => 50,
    maxRetriesPerRequest: null,
  })
  admin.on('error', () => undefined)
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    get process() {
      return child
    },
    admin,
    signal: (name) => void child.kill(name),
    kill: () => end(child),
    async restart() {
      await end(child)
      child = await launch(port, directory, more)
    },
    async stop() {
      admin.disconnect()
      child.kill('SIGCONT')
      await end(child)
      await rm(directory, { recursive: true, force: true })
    },
  }
}
