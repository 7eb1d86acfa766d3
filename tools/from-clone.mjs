/**
 * How long it takes from a clone to chatting: clones what is committed into an empty folder, runs README's first command
 * there with an npm cache that is empty, writes into the web chat, and waits for the answer.
 *
 *   node tools/from-clone.mjs           fails if it takes more than two minutes
 *   node tools/from-clone.mjs --warm    with the npm cache of this machine
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { readArguments } from './arguments.mjs'
import { endWithMe } from './servers/reaper.mjs'
import { ROOT } from './stages/run.mjs'

const LIMIT_MS = 120_000
const ANSWER_MS = 10_000

/** The lines of the demo that begin a part of it, and what was going on until then. */
const PARTS = /** @type {const} */ ([
  [/^Building/, 'npm run demo: installs'],
  [/^ +Starting three replicas/, 'npm run demo: builds'],
  [/^ +Web chat +(\S+)/, 'npm run demo: starts Redis, replicas, balancer'],
])

/** @param {string[]} args */
async function main(args) {
  const { warm } = readArguments(args, { warm: { kind: 'switch' } })
  const dir = mkdtempSync(join(tmpdir(), 'botmesh-clone-'))
  try {
    const ms = await measure(
      join(dir, 'botmesh'),
      warm === true ? {} : { npm_config_cache: join(dir, 'cache') },
    )
    console.log(`${seconds(ms)}  from clone to chatting${warm === true ? '' : ', with an empty npm cache'}`)
    process.exitCode = ms > LIMIT_MS ? 1 : 0
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/**
 * @param {string} clone
 * @param {Record<string, string>} env
 */
async function measure(clone, env) {
  const begun = performance.now()
  let since = begun
  const note = (/** @type {string} */ what) => {
    console.log(`${seconds(performance.now() - since)}  ${what}`)
    since = performance.now()
  }
  execFileSync('git', ['clone', '--quiet', ROOT, clone])
  note('git clone')
  const demo = spawn('npm', ['run', 'demo', '--', '--port=0'], {
    ...{ cwd: clone, env: { ...process.env, ...env }, detached: true, stdio: ['ignore', 'pipe', 'inherit'] },
  })
  endWithMe(demo)
  const ended = once(demo, 'close')
  try {
    const url = await partsOf(demo, note)
    await chat(clone, url)
    note('first answer in the web chat')
    return performance.now() - begun
  } finally {
    if (demo.pid !== undefined && demo.exitCode === null && demo.signalCode === null) endGroup(demo.pid)
    await ended
  }
}

/** @param {number} pid of a group that may have ended by now: that must not hide what went wrong before. */
function endGroup(pid) {
  try {
    process.kill(-pid, 'SIGTERM')
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH') throw error
  }
}

/**
 * @param {import('node:child_process').ChildProcess} demo
 * @param {(what: string) => void} note
 * @returns {Promise<string>} address of the chat
 */
async function partsOf(demo, note) {
  if (demo.stdout === null) throw new Error('The demo has no output.')
  /** @type {string[]} */
  const lines = []
  let next = 0
  for await (const line of createInterface({ input: demo.stdout })) {
    lines.push(line)
    const [pattern, what] = PARTS[next] ?? []
    const found = pattern?.exec(line)
    if (found === undefined || found === null || what === undefined) continue
    note(what)
    next += 1
    if (next === PARTS.length) {
      demo.stdout.resume() // What it says later is not of interest, and must not stop it.
      return found[1] ?? ''
    }
  }
  throw new Error(`The demo ended before its chat was there:\n${lines.join('\n')}`)
}

/**
 * Asks for an order as the page does, with the clone's own WebSocket client: Node 20 has none.
 * @param {string} clone
 * @param {string} url
 */
async function chat(clone, url) {
  const { WebSocket } = createRequire(join(clone, 'package.json'))('ws')
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/ws`)
  const answered = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`No answer within ${ANSWER_MS} ms.`)), ANSWER_MS)
    socket.on('error', reject)
    socket.on('message', (/** @type {Buffer} */ data) => {
      const { t, from } = JSON.parse(data.toString('utf8'))
      if (t === 'welcome') socket.send(JSON.stringify({ t: 'msg', cid: 'first-words', text: 'order' }))
      if (t !== 'msg' || from !== 'bot') return
      clearTimeout(timer)
      resolve(undefined)
    })
  })
  socket.on('open', () => socket.send(JSON.stringify({ t: 'hello', v: 1 })))
  await answered
  socket.terminate()
}

/** @param {number} ms */
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`.padStart(9)

await main(process.argv.slice(2))
