/**
 * Ends what this process started, also if this process is killed: a small shell reads the process ids over a
 * pipe and, when the pipe closes, sends SIGKILL to those that are still noted. An orderly end takes its id off the
 * list first, so that an id which the system has given to somebody else is never touched.
 */
import { spawn } from 'node:child_process'

const SCRIPT = `trap '' INT TERM HUP
pids=' '
while read -r op pid; do
  case "$op" in
    +) pids="$pids$pid " ;;
    -) pids="\${pids%% $pid *} \${pids#* $pid }" ;;
  esac
done
for pid in $pids; do kill -9 "$pid" 2>/dev/null; done`

/** @type {import('node:child_process').ChildProcess | undefined} */
let reaper
const watched = new Set()

/** @param {string} line */
function tell(line) {
  if (reaper === undefined) {
    reaper = spawn('sh', ['-c', SCRIPT], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
    reaper.on('error', () => {}) // Without a shell only the orderly end is left.
    reaper.stdin?.on('error', () => {})
    reaper.unref()
    const stdin = /** @type {import('node:net').Socket | null} */ (reaper.stdin)
    stdin?.unref()
  }
  reaper.stdin?.write(`${line}\n`)
}

/**
 * Watches a child until it exits by itself or is ended.
 * @param {import('node:child_process').ChildProcess} child
 */
export function endWithMe(child) {
  const { pid } = child
  if (pid === undefined) return
  watched.add(pid)
  tell(`+ ${pid}`)
  child.once('exit', () => {
    watched.delete(pid)
    tell(`- ${pid}`)
    if (watched.size > 0) return
    reaper?.stdin?.end()
    reaper = undefined
  })
}
