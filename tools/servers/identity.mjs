/** Servers that refuse to run as root run as a user of their own. */
import { execFileSync } from 'node:child_process'
import { chownSync } from 'node:fs'

/**
 * @param {string | undefined} user whom the server would like to run as
 * @returns {{ uid?: number, gid?: number }} for spawn; empty where this process is not root or need not change
 */
export function identityOf(user) {
  if (user === undefined || process.getuid?.() !== 0) return {}
  for (const name of [user, 'nobody']) {
    try {
      const [uid, gid] = ['-u', '-g'].map((what) =>
        Number(execFileSync('id', [what, name], { stdio: 'pipe' })),
      )
      return { ...(uid === undefined ? {} : { uid }), ...(gid === undefined ? {} : { gid }) }
    } catch {
      // No such user here: the next one.
    }
  }
  return {}
}

/**
 * @param {string} path
 * @param {{ uid?: number, gid?: number }} identity
 */
export function giveTo(path, { uid, gid }) {
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid)
}
