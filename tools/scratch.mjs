/**
 * Where a test run keeps what it writes: in memory, if the system has room there. A disk that is busy with something
 * else, such as what npm has just written, keeps a database waiting for seconds, and tests of leases with it.
 */
import { chmodSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'

const MEMORY = '/dev/shm'
const LEAST_BYTES = 2 * 1024 ** 3

/**
 * From now on it is `os.tmpdir()`, of this process and of those that it starts, unless TMPDIR is given.
 * @returns {() => void} removes it
 */
export function scratchInMemory() {
  if (process.env['TMPDIR'] !== undefined || !hasRoom()) return () => undefined
  removeLeft()
  const dir = mkdtempSync(join(MEMORY, `botmesh-${process.pid}-`))
  // As the system's own: servers that run as users of their own write there, too.
  // As the system's own: servers that run as users of their own write there, too.
  chmodSync(dir, 0o1777)
  process.env['TMPDIR'] = dir
  return () => {
    delete process.env['TMPDIR']
    rmSync(dir, { recursive: true, force: true })
  }
}

function hasRoom() {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize >= LEAST_BYTES
  } catch {
    // Not on this system.
    return false
  }
}

/** What runs that were killed have left. */
function removeLeft() {
  for (const name of readdirSync(MEMORY)) {
    const pid = Number(/^botmesh-(\d+)-/.exec(name)?.[1])
    if (pid > 0 && !isAlive(pid)) rmSync(join(MEMORY, name), { recursive: true, force: true })
  }
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH'
  }
}
