/** PostgreSQL: how to find, prepare, start and ask it. */
import { readdirSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { askOnce } from './ask.mjs'

/** Debian keeps the programs of each version apart. */
const VERSIONS = '/usr/lib/postgresql'

function places() {
  try {
    const versions = readdirSync(VERSIONS).sort((a, b) => Number(b) - Number(a))
    return versions.map((version) => join(VERSIONS, version, 'bin'))
  } catch {
    return []
  }
}

/** Version 3.0 of the protocol, user and database `postgres`. */
const STARTUP = (() => {
  const text = Buffer.from('user\0postgres\0database\0postgres\0\0')
  const head = Buffer.alloc(8)
  head.writeInt32BE(8 + text.length, 0)
  head.writeInt32BE(196_608, 4)
  return Buffer.concat([head, text])
})()

/** @type {import('./private-server.mjs').ServerDescription} */
export const postgres = {
  name: 'postgres',
  urlVariable: 'POSTGRES_URL',
  testUrlVariable: 'BOTMESH_POSTGRES_URL',
  testBinaryVariable: 'BOTMESH_POSTGRES_SERVER',
  program: 'postgres',
  places: places(),
  user: 'postgres',
  stopSignal: 'SIGINT',
  aptPackages: ['postgresql'],
  otherWays: [
    'macOS: brew install postgresql',
    'Fedora: dnf install postgresql-server',
    'Alpine: apk add postgresql',
  ],
  url: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
  prepare: (program, dir, run) => {
    const initdb = join(dirname(realpathSync(program)), 'initdb')
    return run(initdb, ['-D', join(dir, 'data'), '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'])
  },
  // Durability of a private test server is of no use: fsync off makes it several times faster.
  args: ({ port, dir }) => [
    ...['-D', join(dir, 'data'), '-p', String(port), '-h', '127.0.0.1', '-k', dir],
    ...['-c', 'fsync=off', '-c', 'max_connections=300'],
  ],
  // 'R': authenticated. While it starts up it answers 'E'.
  ping: (port) => askOnce(port, STARTUP, (answer) => answer[0] === 'R'.charCodeAt(0)),
}
