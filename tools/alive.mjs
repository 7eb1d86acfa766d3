/** @param {number} pid @returns {boolean} whether there is such a process here, of whomever it is */
export function isAlive(pid) {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH'
  }
}
