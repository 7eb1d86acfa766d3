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
import { giveTo, identityOf } from './identity.mjs'
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
 * @property {NodeJS.Signals} [stopSignal] asks for an orderly end without waiting for clients; default SIGTERM
 * @property {(port: number) => string} url
 * @property {(place: { port: number, dir: string }) => string[]} args
 * @property {string} [user] whom it runs as where this process is root and the server refuses that
 * @property {(program: string, dir: string, run: Run) => Promise<void>} [prepare] makes the data directory
 * @property {(port: number) => Promise<boolean>} ping true once it serves
 */

/**
 * Runs a program to its end, as the server's user.
 * @typedef {(file: string, args: string[]) => Promise<void>} Run
 *
 * @typedef {{ uid?: number, gid?: number }} Identity
 *
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
  const identity = identityOf(server.user)
  const ownDir = options.dir === undefined
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), `botmesh-${server.name}-`)))
  try {
    if (ownDir) {
      giveTo(dir, identity)
      await server.prepare?.(program, dir, (file, args) => run(file, args, { ...identity, cwd: dir }))
    }
    // A port may be taken between the probe and the bind: then another one is tried, unless it was asked for.
    for (let left = options.port === undefined ? 4 : 0; ; left -= 1) {
      const port = options.port ?? (await freePort())
      try {
        return await launch(server, program, { port, dir, ownDir, identity, args: options.args ?? [] })
      } catch (error) {
        if (left === 0) throw error
      }
    }
  } catch (error) {
    if (ownDir) await rm(dir, { recursive: true, force: true })
    throw error
  }
}

/**
 * @param {ServerDescription} server
 * @param {string} program
 * @param {{ port: number, dir: string, ownDir: boolean, identity: Identity, args: string[] }} place
 * @returns {Promise<PrivateServer>}
 */
async function launch(server, program, { port, dir, ownDir, identity, args }) {
  const log = join(dir, `${server.name}.log`)
  const allArgs = [...server.args({ port, dir }), ...args]
  const { child, exited, hasEnded } = spawnLogged(program, allArgs, { ...identity, cwd: dir }, log)
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
      child.kill(server.stopSignal ?? 'SIGTERM')
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
 * @param {Identity & { cwd: string }} options
 * @param {string} log file that its output is added to
 */
function spawnLogged(program, args, options, log) {
  const out = openSync(log, 'a')
  const child = spawn(program, args, { ...options, stdio: ['ignore', out, out] })
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
 * @param {string} file
 * @param {string[]} args
 * @param {Identity & { cwd: string }} options
 */
async function run(file, args, options) {
  const child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data) => {
      output += data
    })
  }
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`${file} ended with code ${code}:\n${output.slice(-2_000)}`)
}
