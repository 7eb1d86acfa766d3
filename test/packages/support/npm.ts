/** npm as a stranger runs it, with an error that says so when there is no network. */
import { execFile } from 'node:child_process'

/** What npm says when it cannot get through, as against: when something is wrong with a package. */
const UNREACHABLE =
  /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ENOTCACHED|E50[234]|ERR_SOCKET_TIMEOUT|EIDLETIMEOUT|FETCH_ERROR)\b/

/** Cached packages are taken as they are: a second run needs next to no network. */
const INSTALL = [
  ...['install', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'],
  ...['--loglevel=error', '--fetch-retries=1', '--fetch-retry-mintimeout=500', '--fetch-timeout=30000'],
]

/** @throws Error with what npm said; a registry that is not there is named as the cause. */
export async function npmInstall(cwd: string, wanted: readonly string[]): Promise<void> {
  const { code, output } = await run('npm', [...INSTALL, ...wanted], { cwd })
  if (code === 0) return
  throw new Error(explain(wanted, output))
}

/** The text of the error. */
export function explain(wanted: readonly string[], output: string): string {
  const [reason] = UNREACHABLE.exec(output) ?? []
  const what = `npm install ${wanted.join(' ')}`
  return reason === undefined
    ? `${what} failed:\n${output}`
    : `The npm registry cannot be reached (${reason}), and this test installs packages as a stranger would: it needs the registry, or an npm cache that has everything. Nothing is said about the packages themselves.\n${what}:\n${output}`
}

export interface RunResult {
  code: number
  /** Standard output and error, one after the other. */
  output: string
}

export interface RunOptions {
  cwd: string
  env?: Record<string, string>
  /** Default 120 s; then it is killed. */
  timeoutMs?: number
}

/** Runs a program to its end. Never rejects. */
export function run(file: string, args: readonly string[], options: RunOptions): Promise<RunResult> {
  const { cwd, env = {}, timeoutMs = 120_000 } = options
  return new Promise((resolve) => {
    execFile(
      file,
      args,
      { cwd, env: { ...strangersEnv(), ...env }, timeout: timeoutMs, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1
        const why = error?.killed === true ? `\nkilled after ${timeoutMs} ms` : ''
        resolve({ code, output: `${stdout}${stderr}${why}`.trim() })
      },
    )
  })
}

/** Without what Jest, and npm as the parent of this run, have set for this project. */
function strangersEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) =>
        !/^(NODE_OPTIONS|NODE_ENV|INIT_CWD|JEST_WORKER_ID|BOTMESH_PACKED|npm_(lifecycle|package|command|node|execpath).*|npm_config_(local_prefix|loglevel|omit_lockfile.*|prefix))$/i.test(
          name,
        ),
    ),
  )
}
