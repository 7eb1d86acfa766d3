/** Redis: how to find, start and ask it. */
import { connect } from 'node:net'

/** @type {import('./private-server.mjs').ServerDescription} */
export const redis = {
  name: 'redis',
  urlVariable: 'REDIS_URL',
  testUrlVariable: 'BOTMESH_REDIS_URL',
  testBinaryVariable: 'BOTMESH_REDIS_SERVER',
  program: 'redis-server',
  aptPackages: ['redis-server', 'redis-tools'],
  otherWays: ['macOS: brew install redis', 'Fedora: dnf install redis (or valkey)', 'Alpine: apk add redis'],
  url: (port) => `redis://127.0.0.1:${port}`,
  // No persistence: a restarted instance is empty, which is what the tests of a lost Redis need.
  args: ({ port, dir }) => [
    ...['--port', String(port), '--bind', '127.0.0.1', '--dir', dir],
    ...['--save', '', '--appendonly', 'no', '--daemonize', 'no', '--loglevel', 'warning'],
  ],
  ping: (port) =>
    new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1')
      /** @param {boolean} answer */
      const end = (answer) => {
        socket.destroy()
        resolve(answer)
      }
      socket.setTimeout(1_000, () => end(false))
      socket.once('error', () => end(false))
      socket.once('connect', () => socket.write('PING\r\n'))
      // A server that wants a password answers an error: it serves all the same.
      socket.once('data', (data) => end(/^(\+PONG|-NOAUTH|-DENIED)/.test(data.toString())))
    }),
}
