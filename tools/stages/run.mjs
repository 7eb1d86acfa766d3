/** Runs one command of a stage: quiet while it goes well, its whole output when it fails. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { endWithMe } from '../servers/reaper.mjs'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/**
 * @typedef {object} Outcome
 * @property {number} passed
 * @property {number} failed
 * @property {string} [note] a few words for the table
 */

/** The environment of children: no colours unless somebody looks at a terminal. */
export function childEnv() {
  const { FORCE_COLOR: _, ...env } = process.env
  return process.stdout.isTTY ? env : { ...env, NO_COLOR: '1' }
}

/**
 * @param {string[]} command
 * @returns {Promise<Outcome>}
 */
export async function runQuietly([file = '', ...args]) {
  const child = spawn(file, args, { cwd: ROOT, env: childEnv(), stdio: ['ignore', 'pipe', 'pipe'] })
  endWithMe(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data) => {
      output += data
    })
  }
  const failure = await new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(code === 0 ? undefined : `exit ${code ?? signal}`))
  })
  if (failure === undefined) return { passed: 1, failed: 0 }
  console.log(output.trimEnd())
  return { passed: 0, failed: 1, note: failure }
}

/**
 * A development dependency's program, run by this very Node.
 * @param {string} script path in node_modules
 * @param {string[]} args
 */
export function runTool(script, ...args) {
  return runQuietly([process.execPath, `node_modules/${script}`, ...args])
}
