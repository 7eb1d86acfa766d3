/**
 * Runs Jest with a time limit round it and counts from its result file. The limit is for what a test's own
 * time-out cannot end: a client that retries for ever keeps the process alive after the last test.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endWithMe } from '../servers/reaper.mjs'
import { childEnv, ROOT } from './run.mjs'

const EXIT_MS = 20_000

/**
 * @param {object} options
 * @param {string[]} options.args for Jest
 * @param {Record<string, string>} options.env addresses of the servers
 * @param {number} options.limitMs
 * @returns {Promise<import('./run.mjs').Outcome>}
 */
export async function jest({ args, env, limitMs }) {
  const dir = mkdtempSync(join(tmpdir(), 'botmesh-jest-'))
  const results = join(dir, 'results.json')
  try {
    const overdue = await runWithin(args, results, env, limitMs)
    return count(results, overdue)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/**
 * @param {string[]} args
 * @param {string} results
 * @param {Record<string, string>} env
 * @param {number} limitMs
 * @returns {Promise<string | undefined>} why it had to be ended or failed to run, if so
 */
function runWithin(args, results, env, limitMs) {
  const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning']
  const jestArgs = ['--maxWorkers=2', '--json', `--outputFile=${results}`, ...args]
  // A group of its own, so that Jest's workers end with it.
  const child = spawn(process.execPath, [...flags, 'node_modules/jest/bin/jest.js', ...jestArgs], {
    ...{ cwd: ROOT, env: { ...childEnv(), ...env }, detached: true },
    stdio: ['ignore', 'ignore', 1] /* Its report goes to standard error: in line with ours. */,
  })
  endWithMe(child)
  /** @type {string | undefined} */
  let overdue
  /** @param {string} why */
  const end = (why) => {
    overdue ??= why
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  }
  const limit = setTimeout(() => end(`not done within ${Math.round(limitMs / 1000)} s`), limitMs)
  /** @type {NodeJS.Timeout | undefined} */
  let exit
  const watch = setInterval(() => {
    if (exit !== undefined || !existsSync(results)) return
    exit = setTimeout(() => end('something kept it alive after the last test'), EXIT_MS)
  }, 500)
  const interrupt = () => end('interrupted')
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt)
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', () => resolve(overdue))
  }).finally(() => {
    clearTimeout(limit)
    clearTimeout(exit)
    clearInterval(watch)
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt)
  })
}

/**
 * @param {string} results
 * @param {string | undefined} overdue
 * @returns {import('./run.mjs').Outcome}
 */
function count(results, overdue) {
  if (!existsSync(results)) return { passed: 0, failed: 1, note: overdue ?? 'it did not run' }
  const all = JSON.parse(readFileSync(results, 'utf8'))
  const failed = all.numFailedTests + all.numRuntimeErrorTestSuites + (overdue === undefined ? 0 : 1)
  const notes = [`${all.numTotalTestSuites} files`]
  const left = all.numPendingTests + all.numTodoTests
  if (left > 0) notes.push(`${left} not run`)
  if (overdue !== undefined) notes.push(overdue)
  // Jest fails for other reasons too, such as a pattern that matches no test.
  return {
    passed: all.numPassedTests,
    failed: failed === 0 && !all.success ? 1 : failed,
    note: notes.join(', '),
  }
}
