/** Redis: how to find, start and ask it. */
import { askOnce } from './ask.mjs'

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
  // A server that wants a password answers an error: it serves all the same.
  ping: (port) => askOnce(port, 'PING\r\n', (answer) => /^(\+PONG|-NOAUTH|-DENIED)/.test(answer.toString())),
}
