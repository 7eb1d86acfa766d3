/**
 * A private instance of a server: on a free port of this machine, in a directory of its own, ended by its own
 * process id. What differs between servers stands in their descriptions (`redis.mjs`, …).
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from './port.mjs'
import { endWithMe } from './reaper.mjs'

/**
 * @typedef {object} ServerDescription
 * @property {string} name for messages and directories
 * @property {string} urlVariable a server that the user provides
 * @property {string} testUrlVariable what tests read the shared server's address from
 * @property {string} testBinaryVariable what tests read the program's path from, to start instances of their own
 * @property {string} program file name of the server program
 * @property {string[]} [places] directories to look into besides PATH
 * @property {string[]} aptPackages
 * @property {string[]} otherWays how to get it elsewhere, a line each
 * @property {(port: number) => string} url
 * @property {(place: { port: number, dir: string }) => string[]} args
 * @property {(program: string, dir: string) => Promise<void>} [prepare] makes the data directory
 * @property {(port: number) => Promise<boolean>} ping true once it serves
 */

/**
 * @typedef {object} PrivateServer
 * @property {string} url
 * @property {number} port
 * @property {number} pid
 * @property {string} dir
 * @property {Promise<void>} exited
 * @property {(signal: NodeJS.Signals) => void} signal
 * @property {() => Promise<void>} stop orderly, then by force; removes the directory unless it was given. Idempotent.
 * @property {() => Promise<void>} kill SIGKILL, and waits for the end; keeps the directory
 */

const START_MS = 15_000
const STOP_MS = 5_000

/**
 * @param {ServerDescription} server
 * @param {string} program path of the server program
 * @param {{ port?: number, dir?: string, args?: string[] }} [options] `args` come after our own and win
 * @returns {Promise<PrivateServer>}
 */
export async function startPrivateServer(server, program, options = {}) {
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), `botmesh-${server.name}-`)))
  if (options.dir === undefined) await server.prepare?.(program, dir)
  // A port may be taken between the probe and the bind: then another one is tried, unless it was asked for.
  for (let left = options.port === undefined ? 4 : 0; ; left -= 1) {
    const port = options.port ?? (await freePort())
    try {
      return await launch(server, program, {
        port,
        dir,
        ownDir: options.dir === undefined,
        args: options.args ?? [],
      })
    } catch (error) {
      if (left > 0) continue
      if (options.dir === undefined) await rm(dir, { recursive: true, force: true })
      throw error
    }
  }
}

/**
 * @param {ServerDescription} server
 * @param {string} program
 * @param {{ port: number, dir: string, ownDir: boolean, args: string[] }} place
 * @returns {Promise<PrivateServer>}
 */
async function launch(server, program, { port, dir, ownDir, args }) {
  const log = join(dir, `${server.name}.log`)
  const { child, exited, hasEnded } = spawnLogged(program, [...server.args({ port, dir }), ...args], dir, log)
  const kill = async () => {
    if (!hasEnded()) child.kill('SIGKILL')
    await exited
  }
  const deadline = performance.now() + START_MS
  while (!hasEnded() && !(await server.ping(port))) {
    if (performance.now() > deadline) await kill()
    await delay(10)
  }
  if (hasEnded() || child.pid === undefined) {
    const text = await readFile(log, 'utf8').catch(() => '')
    throw new Error(`${server.name} (${program}) did not start on port ${port}:\n${text.slice(-2_000)}`)
  }
  const stop = async () => {
    if (!hasEnded()) {
      child.kill('SIGCONT')
      child.kill('SIGTERM')
      await Promise.race([exited, delay(STOP_MS, undefined, { ref: false })])
      await kill()
    }
    if (ownDir) await rm(dir, { recursive: true, force: true })
  }
  const signal = (/** @type {NodeJS.Signals} */ name) => void child.kill(name)
  return { url: server.url(port), port, pid: child.pid, dir, exited, stop, kill, signal }
}

/**
 * @param {string} program
 * @param {string[]} args
 * @param {string} cwd
 * @param {string} log file that its output is added to
 */
function spawnLogged(program, args, cwd, log) {
  const out = openSync(log, 'a')
  const child = spawn(program, args, { stdio: ['ignore', out, out], cwd })
  closeSync(out)
  endWithMe(child)
  let ended = false
  /** @type {Promise<void>} */
  const exited = new Promise((resolve) => {
    for (const event of ['error', 'exit']) {
      child.once(event, () => {
        ended = true
        resolve()
      })
    }
  })
  return { child, exited, hasEnded: () => ended }
}

/**
 * Runs a program to its end, for `prepare`.
 * @param {string} file
 * @param {string[]} args
 */
export async function run(file, args) {
  const child = spawn(file, args, { stdio: 'ignore' })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`${file} ended with code ${code}`)
}
