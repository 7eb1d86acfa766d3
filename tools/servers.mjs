/**
 * Provides the servers that tests, benchmarks and the demo need, each in this order: the one whose address the
 * user gives (`REDIS_URL`), else a private instance of an installed program, else one installed through the
 * system's package manager (as root, or with `--yes`), else a list of what is missing and how to get it.
 *
 * As a command: `node tools/servers.mjs [--yes] [--only=redis] -- <command …>` runs the command with the servers' addresses in
 * its environment and ends what it started, also on failure and on Ctrl-C.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { dovecot } from './servers/dovecot.mjs'
import { aptInstall, findProgram } from './servers/find.mjs'
import { mariadb } from './servers/mariadb.mjs'
import { postgres } from './servers/postgres.mjs'
import { startPrivateServer } from './servers/private-server.mjs'
import { endWithMe } from './servers/reaper.mjs'
import { redis } from './servers/redis.mjs'

/** @typedef {import('./servers/private-server.mjs').ServerDescription} ServerDescription */

/** Every server that tests of this checkout use: one is provided where the tests that need it exist. */
export const SERVERS = [
  { server: redis, neededBy: 'test/support' },
  { server: postgres, neededBy: 'libs/postgres-store/test' },
  { server: mariadb, neededBy: 'libs/mysql-store/test' },
  { server: dovecot, neededBy: 'libs/email/test' },
].flatMap(({ server, neededBy }) => (existsSync(new URL(`../${neededBy}`, import.meta.url)) ? [server] : []))

/** Thrown when a server can be had in none of the ways; the message says what to do. */
export class MissingServersError extends Error {}

/**
 * @param {object} [options]
 * @param {ServerDescription[]} [options.servers]
 * @param {boolean} [options.install] install what is missing; default: only as root
 * @param {(line: string) => void} [options.log]
 * @returns {Promise<{ env: Record<string, string>, stop: () => Promise<void> }>} `env` is what children must be given
 * @throws {MissingServersError}
 */
export async function provideServers({ servers = SERVERS, install = isRoot(), log = () => {} } = {}) {
  const programs = await findOrInstall(servers, install, log)
  /** @type {Record<string, string>} */
  const env = {}
  /** @type {Array<() => Promise<void>>} */
  const stops = []
  const stop = async () => {
    await Promise.all(stops.splice(0).map((one) => one()))
  }
  try {
    for (const server of servers) {
      const program = programs.get(server)
      const given = process.env[server.urlVariable]
      if (program !== undefined) env[server.testBinaryVariable] = program
      if (given !== undefined && given !== '') {
        env[server.testUrlVariable] = given
        log(`${server.name}: as given in ${server.urlVariable}`)
      } else if (program !== undefined) {
        const instance = await startPrivateServer(server, program)
        stops.push(instance.stop)
        env[server.testUrlVariable] = instance.url
        log(`${server.name}: private instance on port ${instance.port}`)
      }
    }
  } catch (error) {
    await stop()
    throw error
  }
  return { env, stop }
}

/**
 * The programs are needed even where an address is given: some tests kill and pause servers of their own.
 * @param {ServerDescription[]} servers
 * @param {boolean} install
 * @param {(line: string) => void} log
 */
async function findOrInstall(servers, install, log) {
  const missing = servers.filter((server) => findProgram(server.program, server.places) === undefined)
  /** @type {string | undefined} */
  let failure
  if (missing.length > 0 && install) {
    failure = await aptInstall(
      missing.flatMap((server) => server.aptPackages),
      log,
    )
  }
  const programs = new Map(servers.map((server) => [server, findProgram(server.program, server.places)]))
  const still = servers.filter((server) => programs.get(server) === undefined)
  if (still.length > 0) throw new MissingServersError(explain(still, install, failure))
  return programs
}

/**
 * @param {ServerDescription[]} missing
 * @param {boolean} install
 * @param {string} [failure]
 */
function explain(missing, install, failure) {
  const lines = ['These servers are needed and are not installed:']
  for (const { program, urlVariable, aptPackages, otherWays } of missing) {
    lines.push(`  ${program}`, `    Debian, Ubuntu: sudo apt-get install ${aptPackages.join(' ')}`)
    lines.push(...otherWays.map((way) => `    ${way}`))
    lines.push(
      `    ${urlVariable} may name a running server, but tests that kill or pause one need the program too.`,
    )
  }
  if (failure !== undefined) lines.push(`Installing them failed: ${failure}`)
  else if (!install)
    lines.push('With --yes they are installed through the package manager (apt-get, by sudo).')
  return lines.join('\n')
}

function isRoot() {
  return process.getuid?.() === 0
}

/** @param {string[]} args */
async function main(args) {
  const split = args.indexOf('--')
  const [file, ...rest] = split < 0 ? [] : args.slice(split + 1)
  if (file === undefined)
    throw new Error('Usage: node tools/servers.mjs [--yes] [--only=redis] -- <command …>')
  const own = args.slice(0, split)
  const only = own
    .find((one) => one.startsWith('--only='))
    ?.slice('--only='.length)
    .split(',')
  const { env, stop } = await provideServers({
    servers: SERVERS.filter(({ name }) => only === undefined || only.includes(name)),
    ...(own.includes('--yes') ? { install: true } : {}),
    log: (line) => console.error(line),
  })
  const child = spawn(file, rest, { stdio: 'inherit', env: { ...process.env, ...env } })
  endWithMe(child)
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM']))
    process.on(signal, () => child.kill(signal))
  const code = await new Promise((resolve) => {
    child.once('error', () => resolve(127))
    child.once('exit', (status, signal) => resolve(status ?? (signal === 'SIGINT' ? 130 : 1)))
  })
  await stop()
  process.exitCode = code
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  main(process.argv.slice(2)).catch((error) => {
    console.error(error instanceof Error ? error.message : error)
    process.exitCode = 1
  })
}
