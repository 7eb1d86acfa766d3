/** One private redis-server for a whole run: its own port and directory, ended by its own pid. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

export async function startRedis() {
  const directory = await mkdtemp(join(tmpdir(), 'botmesh-bench-'))
  const port = await freePort()
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
  const child = spawn('redis-server', settings, { stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`redis-server ended with ${code}`)))
    child.stdout.on('data', (data) => {
      if (String(data).includes('Ready to accept connections')) resolve()
    })
  })
  child.removeAllListeners('exit')
  const admin = new Redis(port, '127.0.0.1')
  return {
    port,
    admin,
    /** CPU time of the server so far, in µs; script calls; and all that clients have sent but the admin's questions. */
    async usage() {
      const cpu = await admin.info('cpu')
      const stats = await admin.info('commandstats')
      const seconds = (name) => Number(new RegExp(`${name}:([\\d.]+)`).exec(cpu)?.[1] ?? 0)
      const calls = (name) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
      const scripts = calls('evalsha') + calls('eval')
      return {
        cpuUs: (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1e6,
        scripts,
        // What scripts call inside is not counted: none of ours calls these.
        calls: scripts + calls('ping') + calls('subscribe') + calls('unsubscribe'),
      }
    },
    async stop() {
      admin.disconnect()
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
      await rm(directory, { recursive: true, force: true })
    },
  }
}
