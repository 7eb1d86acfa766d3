/**
 * A private Sentinel set: a primary with one replica, and three Sentinels of which two must agree. They notice a primary
 * that is gone or silent in less than a second.
 */
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startPrivateServer } from './private-server.mjs'
import { redis } from './redis.mjs'
import { ask } from './resp.mjs'

/**
 * @typedef {import('./private-server.mjs').PrivateServer} PrivateServer
 *
 * @typedef {object} SentinelOptions
 * @property {string[]} [args] for primary and replica
 * @property {number} [downAfterMs]
 * @property {string} [password]
 * @property {string} [sentinelPassword]
 *
 * @typedef {object} PrivateSentinels
 * @property {string} name of the primary
 * @property {Array<{ host: string, port: number }>} sentinels
 * @property {PrivateServer[]} servers the first primary, and its replica
 * @property {() => Promise<number>} primary index of the server that the Sentinels say is the primary
 * @property {(index: number) => Promise<void>} restart brings back a server that was killed, empty, as a replica
 * @property {() => Promise<void>} whole resolves when primary and replica are in step and all Sentinels know it
 * @property {() => Promise<void>} stop
 */

const NAME = 'botmesh'
const WHOLE_MS = 30_000

/**
 * @param {string} program path of redis-server, which is a Sentinel too if told so
 * @param {SentinelOptions} [options]
 * @returns {Promise<PrivateSentinels>}
 */
export async function startPrivateSentinels(program, options = {}) {
  const { downAfterMs = 600, password, sentinelPassword } = options
  const all = argsOfServers(options)
  const auth = password === undefined ? [] : [password]
  const sentinelAuth = sentinelPassword === undefined ? [] : [sentinelPassword]
  /** @type {PrivateServer[]} */
  const servers = []
  /** @type {PrivateServer[]} */
  const sentinels = []
  /** @type {PrivateServer[]} */
  const firsts = []
  // The first ones remove the directories, which later ones were only lent.
  const stop = () => stopAll([...sentinels, ...servers], firsts)
  const place = (/** @type {number} */ index) => /** @type {PrivateServer} */ (servers[index])
  try {
    servers.push(await startPrivateServer(redis, program, { args: all }))
    const { port } = place(0)
    const follow = [...all, '--replicaof', '127.0.0.1', String(port)]
    servers.push(await startPrivateServer(redis, program, { args: follow }))
    firsts.push(...servers)
    const description = sentinelOf(port, downAfterMs, { password, sentinelPassword })
    for (let left = 3; left > 0; left -= 1) sentinels.push(await startPrivateServer(description, program))
    const indexOfPrimary = () => indexNow(servers, sentinels, sentinelAuth)
    const whole = () => untilWhole(servers, sentinels, indexOfPrimary, { auth, sentinelAuth })
    await whole()
    return {
      name: NAME,
      sentinels: sentinels.map((one) => ({ host: '127.0.0.1', port: one.port })),
      servers,
      primary: indexOfPrimary,
      async restart(index) {
        await place(index).kill()
        const { port: own, dir } = place(index)
        const as = [...all, '--replicaof', '127.0.0.1', String(place(1 - index).port)]
        servers[index] = await startPrivateServer(redis, program, { port: own, dir, args: as })
      },
      whole,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** @param {PrivateServer[][]} groups one after the other */
async function stopAll(...groups) {
  for (const group of groups) await Promise.all(group.map((server) => server.stop()))
}

/**
 * @param {PrivateServer[]} servers
 * @param {PrivateServer[]} sentinels
 * @param {string[]} auth
 */
async function indexNow(servers, sentinels, auth) {
  const now = await primaryPort(sentinels, auth)
  return servers.findIndex((server) => server.port === now)
}

/** @param {SentinelOptions} options */
function argsOfServers({ args = [], password }) {
  const secret = password === undefined ? [] : ['--requirepass', password, '--masterauth', password]
  return ['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1', ...secret, ...args]
}

/**
 * What the Sentinels say, the middle of their answers; 0 if most of them say nothing.
 * @param {PrivateServer[]} sentinels
 * @param {string[]} auth
 */
async function primaryPort(sentinels, auth) {
  const question = ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME]
  const answers = await Promise.all(
    sentinels.map(({ port }) => ask(port, question, { auth }).catch(() => null)),
  )
  const ports = answers.map((answer) => (Array.isArray(answer) ? Number(answer[1]) : 0))
  return ports.toSorted((one, other) => one - other)[1] ?? 0
}

/**
 * @param {number} ofPrimary port
 * @param {number} downAfterMs
 * @param {{ password: string | undefined, sentinelPassword: string | undefined }} secrets
 * @returns {import('./private-server.mjs').ServerDescription}
 */
function sentinelOf(ofPrimary, downAfterMs, { password, sentinelPassword }) {
  return {
    ...redis,
    name: 'redis-sentinel',
    // A Sentinel writes what it learns into its file, so each has one of its own.
    prepare: async (_program, dir) => {
      const lines = [
        `sentinel monitor ${NAME} 127.0.0.1 ${ofPrimary} 2`,
        `sentinel down-after-milliseconds ${NAME} ${downAfterMs}`,
        `sentinel failover-timeout ${NAME} 4000`,
        `sentinel parallel-syncs ${NAME} 1`,
        ...(password === undefined ? [] : [`sentinel auth-pass ${NAME} ${quoted(password)}`]),
        ...(sentinelPassword === undefined
          ? []
          : [
              `requirepass ${quoted(sentinelPassword)}`,
              `sentinel sentinel-pass ${quoted(sentinelPassword)}`,
            ]),
      ]
      const file = join(dir, 'sentinel.conf')
      await writeFile(file, `${lines.join('\n')}\n`)
      await chmod(file, 0o600)
    },
    args: ({ port, dir }) => [
      join(dir, 'sentinel.conf'),
      ...['--sentinel', '--port', String(port), '--bind', '127.0.0.1', '--dir', dir],
    ],
  }
}

/**
 * @param {PrivateServer[]} servers
 * @param {PrivateServer[]} sentinels
 * @param {() => Promise<number>} primary
 * @param {{ auth: string[], sentinelAuth: string[] }} secrets
 */
async function untilWhole(servers, sentinels, primary, { auth, sentinelAuth }) {
  const limit = performance.now() + WHOLE_MS
  for (;;) {
    const index = await primary()
    const asked = await Promise.all([
      ...servers.map(({ port }) => ask(port, ['INFO', 'replication'], { auth }).catch(() => '')),
      ...sentinels.map(({ port }) => ask(port, ['INFO', 'sentinel'], { auth: sentinelAuth }).catch(() => '')),
    ])
    const [first = '', second = '', ...known] = asked.map(String)
    const inStep = [first, second].every((info, at) =>
      at === index ? /role:master/.test(info) : /master_link_status:up/.test(info),
    )
    if (index >= 0 && inStep && known.every((info) => /status=ok,.*slaves=1,sentinels=3/.test(info))) return
    if (performance.now() > limit)
      throw new Error(`The Sentinel set did not become whole:\n${asked.join('\n')}`)
    await delay(30)
  }
}

/** @param {string} text as the configuration file takes it */
function quoted(text) {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}
