/**
 * A private Redis Cluster: three masters with a replica each on free ports of this machine. It notices a master that is
 * gone or silent within about a second, so that tests of failovers are short.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from './port.mjs'
import { startPrivateServer } from './private-server.mjs'
import { redis } from './redis.mjs'
import { ask } from './resp.mjs'

/**
 * @typedef {import('./private-server.mjs').PrivateServer} PrivateServer
 *
 * @typedef {object} ClusterNode
 * @property {PrivateServer} server
 * @property {string} id as the cluster names it
 *
 * @typedef {object} ClusterOptions
 * @property {string[]} [args] for every node
 * @property {number} [nodeTimeoutMs]
 * @property {string[]} [tlsArgs] certificates: each node has a port for TLS besides, which is the one in `addresses`, and
 *   they use TLS among themselves
 *
 * @typedef {object} PrivateCluster
 * @property {ClusterNode[]} nodes those that were masters at first come first
 * @property {Array<{ host: string, port: number }>} addresses of all nodes
 * @property {(slot: number) => Promise<number>} ownerOf index of the node that serves this slot as the others see it; -1: none
 * @property {(index: number) => Promise<void>} restart brings back a node that was killed, with its name and no data
 * @property {() => Promise<void>} whole resolves when every slot is served, every replica is in step and all agree
 * @property {() => Promise<void>} stop
 */

const MASTERS = 3
const SLOTS = 16_384
const WHOLE_MS = 30_000

/**
 * @param {string} program path of redis-server
 * @param {ClusterOptions} [options]
 * @returns {Promise<PrivateCluster>}
 */
export async function startPrivateCluster(program, options = {}) {
  const description = withBusPort(redis)
  const tlsPorts = await Promise.all(
    Array.from({ length: 2 * MASTERS }, async () => (options.tlsArgs === undefined ? undefined : freePort())),
  )
  const start = (/** @type {number} */ index, place = {}) =>
    startPrivateServer(description, program, { ...place, args: argsOfNode(options, tlsPorts[index]) })
  const { servers, failed } = await startAll(tlsPorts.map((_, index) => start(index)))
  const firsts = [...servers]
  const stop = async () => {
    await Promise.all(servers.map((server) => server.stop()))
    // Those remove the directories, which the later ones were only lent.
    await Promise.all(firsts.map((server) => server.stop()))
  }
  try {
    if (failed) throw failed.reason
    return { ...(await meet(servers, tlsPorts, start)), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/**
 * @param {PrivateServer[]} servers
 * @param {Array<number | undefined>} tlsPorts
 * @param {(index: number, place: { port: number, dir: string }) => Promise<PrivateServer>} start
 * @returns {Promise<Omit<PrivateCluster, 'stop'>>}
 */
async function meet(servers, tlsPorts, start) {
  const at = (/** @type {number} */ index) => /** @type {PrivateServer} */ (servers[index])
  const tell = tellerOf(at)
  const ports = servers.map(({ port }, index) => tlsPorts[index] ?? port)
  const ids = await Promise.all(servers.map(async (_, index) => String(await tell(index, 'CLUSTER', 'MYID'))))
  await form(ids, { port: ports[0] ?? 0, busPort: busPortOf(at(0).port) }, tell)
  const whole = () => untilWhole(servers, tell)
  await whole()
  const nodes = ids.map((id, index) => ({
    id,
    get server() {
      return at(index)
    },
  }))
  return {
    nodes,
    addresses: ports.map((port) => ({ host: '127.0.0.1', port })),
    ownerOf: (slot) => ownerOf(slot, ids, servers, tell),
    async restart(index) {
      await at(index).kill()
      const { port, dir } = at(index)
      servers[index] = await start(index, { port, dir })
    },
    whole,
  }
}

/**
 * Those that start are to be stopped also if another one did not.
 * @param {Promise<PrivateServer>[]} starts
 */
async function startAll(starts) {
  const started = await Promise.allSettled(starts)
  /** @type {PrivateServer[]} */
  const servers = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  return { servers, failed: started.find((one) => one.status === 'rejected') }
}

/**
 * @param {ClusterOptions} options
 * @param {number | undefined} tlsPort
 */
function argsOfNode({ args = [], nodeTimeoutMs = 1000, tlsArgs }, tlsPort) {
  const all = [
    ...['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeoutMs)],
    // A replica takes over however old its data is: what is lost then is what the tests are about.
    ...['--cluster-replica-validity-factor', '0'],
    ...['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1'],
    ...args,
  ]
  if (tlsArgs === undefined) return all
  const tls = ['--tls-port', String(tlsPort), '--tls-cluster', 'yes', '--tls-replication', 'yes']
  return [...all, ...tls, ...tlsArgs]
}

/**
 * The nodes talk on another port, which by default is ten thousand higher and need not be there.
 * @param {number} port
 */
function busPortOf(port) {
  return port > 32_767 ? port - 20_000 : port + 20_000
}

function withBusPort(/** @type {import('./private-server.mjs').ServerDescription} */ server) {
  return {
    ...server,
    name: 'redis-cluster',
    args: (/** @type {{ port: number, dir: string }} */ place) => [
      ...server.args(place),
      ...['--cluster-port', String(busPortOf(place.port))],
    ],
  }
}

/**
 * @typedef {(index: number, ...command: string[]) => Promise<unknown>} Tell
 */

/**
 * @param {(index: number) => PrivateServer} at
 * @returns {Tell}
 */
function tellerOf(at) {
  return (index, ...command) => ask(at(index).port, command)
}

/**
 * @param {string[]} ids
 * @param {{ port: number, busPort: number }} first where the others meet
 * @param {Tell} tell
 */
async function form(ids, first, tell) {
  const width = Math.ceil(SLOTS / MASTERS)
  for (let index = 0; index < MASTERS; index += 1) {
    const [from, to] = [index * width, Math.min(SLOTS, (index + 1) * width) - 1]
    await tell(index, 'CLUSTER', 'ADDSLOTSRANGE', String(from), String(to))
    await tell(index, 'CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1))
  }
  for (let index = 1; index < ids.length; index += 1) {
    await tell(index, 'CLUSTER', 'MEET', '127.0.0.1', String(first.port), String(first.busPort))
  }
  const limit = performance.now() + WHOLE_MS
  for (let index = MASTERS; index < ids.length;) {
    const answer = await tell(index, 'CLUSTER', 'REPLICATE', ids[index - MASTERS] ?? '').catch(
      (error) => error,
    )
    if (answer === 'OK') index += 1
    else if (performance.now() > limit) throw answer
    else await delay(20)
  }
}

/**
 * @param {PrivateServer[]} servers
 * @param {Tell} tell
 */
async function untilWhole(servers, tell) {
  const limit = performance.now() + WHOLE_MS
  for (;;) {
    const states = await Promise.all(
      servers.map(async (_, index) => {
        const [info, nodes, replication] = await Promise.all([
          tell(index, 'CLUSTER', 'INFO'),
          tell(index, 'CLUSTER', 'NODES'),
          tell(index, 'INFO', 'replication'),
        ]).catch(() => ['', '', ''])
        const lines = String(nodes).trim().split('\n')
        const inStep =
          /role:master/.test(String(replication)) || /master_link_status:up/.test(String(replication))
        return (
          /cluster_state:ok/.test(String(info)) &&
          /cluster_slots_assigned:16384/.test(String(info)) &&
          lines.length === servers.length &&
          lines.every((line) => !/fail|handshake|noaddr/.test(line)) &&
          lines.filter((line) => / (?:myself,)?master /.test(line) && / \d+-\d+/.test(line)).length ===
            MASTERS &&
          inStep
        )
      }),
    )
    if (states.every(Boolean)) return
    if (performance.now() > limit) throw new Error('The cluster did not become whole.')
    await delay(30)
  }
}

/**
 * @param {number} slot
 * @param {string[]} ids
 * @param {PrivateServer[]} servers
 * @param {Tell} tell
 */
async function ownerOf(slot, ids, servers, tell) {
  /** @type {number[]} */
  const votes = servers.map(() => 0)
  await Promise.all(
    servers.map(async (_, index) => {
      const text = String(await tell(index, 'CLUSTER', 'NODES').catch(() => ''))
      for (const line of text.split('\n')) {
        const [id = '', , flags = '', ...rest] = line.split(' ')
        if (!flags.includes('master') || flags.includes('fail')) continue
        const serves = rest.slice(5).some((range) => {
          const [from = NaN, to = from] = range.split('-').map(Number)
          return from <= slot && slot <= to
        })
        const at = ids.indexOf(id)
        if (serves && at >= 0) votes[at] = (votes[at] ?? 0) + 1
      }
    }),
  )
  const most = Math.max(...votes)
  return most > 0 ? votes.indexOf(most) : -1
}
