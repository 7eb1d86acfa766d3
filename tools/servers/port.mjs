/** Free TCP ports on this machine. */
import { createServer } from 'node:net'

/**
 * A port that was free a moment ago. Somebody else may take it before the caller does: whoever binds it must be
 * ready to try another (`startPrivateServer` is).
 * @returns {Promise<number>}
 */
export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      probe.close(() => resolve(port))
    })
  })
}
