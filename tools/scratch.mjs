/**
 * Where a test run keeps what it writes: in memory, if the system has room there. A disk that is busy with something
 * else, such as what npm has just written, keeps a database waiting for seconds, and tests of leases with it.
 */
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { isAlive } from './alive.mjs'

const MEMORY = '/dev/shm'
/** A run takes a few hundred MB. */
const LEAST_BYTES = 2 * 1024 ** 3

/**
 * From now on it is `os.tmpdir()`, of this process and of those that it starts, unless TMPDIR is given or the system has
 * nothing of the kind.
 * @returns {() => void} removes it; says what it could not remove
 */
export function scratchInMemory() {
  if (process.env['TMPDIR'] !== undefined) return () => undefined
  const dir = makeDirectory()
  if (dir === null) return () => undefined
  process.env['TMPDIR'] = dir
  return () => {
    delete process.env['TMPDIR']
    remove(dir)
  }
}

/** @returns {string | null} null: not on this system, no room, or nothing can be run from there */
function makeDirectory() {
  try {
    removeLeft()
    const { bavail, bsize } = fs.statfsSync(MEMORY)
    // Room there is a limit, not memory that is free.
    if (Math.min(bavail * bsize, process.availableMemory()) < LEAST_BYTES) return null
    const dir = fs.mkdtempSync(join(MEMORY, `${prefix()}${process.pid}-`))
    // As the system's own: servers that run as users of their own write there, too.
    fs.chmodSync(dir, 0o1777)
    if (canRunIn(dir)) return dir
    remove(dir)
    return null
  } catch {
    // The disk does as well.
    return null
  }
}

/** Of this process's own world: the same number is another process in another container. */
function prefix() {
  const [number = ''] = /\d+/.exec(fs.readlinkSync('/proc/self/ns/pid')) ?? []
  return `botmesh-${number}-`
}

/** @param {string} dir */
function canRunIn(dir) {
  const script = join(dir, 'probe')
  fs.writeFileSync(script, '#!/bin/sh\nexit 0\n', { mode: 0o755 })
  const { status } = spawnSync(script)
  fs.rmSync(script)
  return status === 0
}

/** What this user's runs that were killed have left. */
function removeLeft() {
  const ours = prefix()
  for (const name of fs.readdirSync(MEMORY)) {
    if (!name.startsWith(ours)) continue
    const path = join(MEMORY, name)
    const pid = Number.parseInt(name.slice(ours.length), 10)
    if (pid > 0 && fs.lstatSync(path).uid === process.getuid?.() && !isAlive(pid)) remove(path)
  }
}

/** @param {string} dir in which a server may be about to write its last */
function remove(dir) {
  try {
    fs.rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  } catch (error) {
    console.log(`Could not remove ${dir}: ${String(error)}`)
  }
}
