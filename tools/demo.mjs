/**
 * `npm run demo`: three replicas of the shop behind a balancer, on a machine with Node and this checkout and nothing
 * else prepared. Installs and builds what is missing, then hands over to tools/demo/main.ts.
 *
 *   npm run demo                     chat with it; keys kill, freeze and drain replicas
 *   npm run demo -- --replay         webhook bodies from a file, one replica killed, one frozen; ends with a summary
 *   npm run demo -- --in-process     as where there is no Redis: three replicas in one process
 *   npm run demo -- --port=8080      the balancer's port, default 3000 (or a free one)
 *   npm run demo -- --verbose        also every line that a replica logs; --lease-ms=N: leases of N milliseconds
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { readSettings } from './demo/settings.mjs'
import { install } from './stages/install.mjs'
import { runQuietly } from './stages/run.mjs'

const HELP = `npm run demo                     chat with three replicas; keys kill, freeze and drain them
npm run demo -- --replay         webhook bodies from a file, one replica killed, one frozen; ends with a summary
npm run demo -- --in-process     as where there is no Redis: three replicas in one process
npm run demo -- --port=8080      the balancer's port, default 3000 (or a free one)
npm run demo -- --lease-ms=5000  how long a dead replica keeps its turns
npm run demo -- --verbose        also every line that a replica logs
REDIS_URL=redis://… uses that Redis instead of a private one.`

const root = fileURLToPath(new URL('..', import.meta.url))
process.chdir(root)

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`Node 20.19 or later is needed; this is ${process.version}.`)
  process.exit(1)
}
if (process.argv.slice(2).some((argument) => argument === '--help' || argument === '-h')) {
  console.log(HELP)
  process.exit(0)
}
try {
  readSettings(process.argv.slice(2)) // Before minutes of installing.
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}
for (const [what, stage] of /** @type {const} */ ([
  ['Installing (the first time a minute or two)', install],
  ['Building', () => runQuietly([process.execPath, 'tools/build.mjs'])],
])) {
  console.log(`${what} …`)
  const outcome = await stage()
  if (outcome.failed > 0) process.exit(1)
}

// Signals reach the child by itself (same terminal) or from us; it stops what it started, then both end.
const child = spawn(
  process.execPath,
  ['--import', './test/support/source-loader.mjs', 'tools/demo/main.ts', ...process.argv.slice(2)],
  { cwd: root, stdio: 'inherit' },
)
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']))
  process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => process.exit(code ?? (signal === 'SIGINT' ? 130 : 1)))
