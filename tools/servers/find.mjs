/** Finds programs and installs packages. */
import { spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * @param {string} program
 * @param {string[]} [places] looked into after PATH
 * @returns {string | undefined} its full path
 */
export function findProgram(program, places = []) {
  const path = (process.env.PATH ?? '').split(delimiter)
  for (const dir of [...path, ...places]) {
    if (dir === '') continue
    try {
      accessSync(join(dir, program), constants.X_OK)
      return join(dir, program)
    } catch {
      // Not here: look into the next one.
    }
  }
  return undefined
}

/**
 * Installs packages with apt-get, as root or through sudo without a question.
 * @param {string[]} packages
 * @param {(line: string) => void} log
 * @returns {Promise<string | undefined>} what went wrong, if something did
 */
export async function aptInstall(packages, log) {
  if (findProgram('apt-get') === undefined) return 'there is no apt-get on this machine'
  const root = process.getuid?.() === 0
  if (!root && findProgram('sudo') === undefined) return 'it takes root, and there is no sudo'
  log(`installing ${packages.join(' ')} with apt-get`)
  const apt = ['apt-get', '-qq', '-o', 'DPkg::Lock::Timeout=120']
  for (const args of [['update'], ['install', '-y', '--no-install-recommends', ...packages]]) {
    const command = root ? [...apt, ...args] : ['sudo', '-n', ...apt, ...args]
    const failure = await runQuietly(command)
    if (failure !== undefined) return `${command.join(' ')}: ${failure}`
  }
  return undefined
}

/**
 * @param {string[]} command
 * @returns {Promise<string | undefined>} the end of its output if it failed
 */
function runQuietly([file = '', ...args]) {
  return new Promise((resolve) => {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
    let tail = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (data) => {
        tail = (tail + data).slice(-1_500)
      })
    }
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code) => resolve(code === 0 ? undefined : `exit code ${code}\n${tail.trim()}`))
  })
}
