/**
 * Which processor measured processes and the server run on. Redis gets one of its own, as it has in production, and the
 * measured processes share the others: left alone, the operating system moves them about and often puts a client where
 * the server works while another processor is idle, which moves the ratio of the same code by up to a half.
 */
import { execFileSync } from 'node:child_process'
import { cpus } from 'node:os'

/** @returns {string} what was done, for the report. Processes that are started later inherit the place of this one. */
export function placeApart(serverPid) {
  const processors = cpus().length
  if (processors < 2) return 'one processor for all'
  try {
    keepOn('0', serverPid)
    keepOn(`1-${processors - 1}`, process.pid)
    return `Redis on a processor of its own, the measured processes on ${processors === 2 ? 'the other' : 'the others'}`
  } catch (error) {
    if (error.code === 'ENOENT') return 'not placed: taskset (util-linux) was not found'
    // A container may allow some processors only.
    return `wherever the system puts them: taskset refused (${String(error.stderr ?? error.message).trim()})`
  }
}

/** Undoes it for this process and those that it starts from now on. */
export function placeAnywhere() {
  const processors = cpus().length
  try {
    keepOn(`0-${processors - 1}`, process.pid)
  } catch {
    // Then it was not placed either.
  }
}

/** All threads of `pid`. */
function keepOn(list, pid) {
  execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', list, String(pid)], { stdio: 'pipe' })
}
