/** MariaDB, for the MySQL store: how to find, prepare, start and ask it. */
import { join } from 'node:path'
import { askOnce } from './ask.mjs'
import { findProgram } from './find.mjs'

/** @type {import('./private-server.mjs').ServerDescription} */
export const mariadb = {
  name: 'mariadb',
  urlVariable: 'MYSQL_URL',
  testUrlVariable: 'BOTMESH_MYSQL_URL',
  testBinaryVariable: 'BOTMESH_MARIADB_SERVER',
  program: 'mariadbd',
  places: ['/usr/sbin', '/usr/local/sbin', '/usr/libexec'],
  user: 'mysql',
  aptPackages: ['mariadb-server'],
  otherWays: ['macOS: brew install mariadb', 'Fedora: dnf install mariadb-server', 'Alpine: apk add mariadb'],
  url: (port) => `mysql://root@127.0.0.1:${port}/test`,
  prepare: (_program, dir, run) => {
    const install = findProgram('mariadb-install-db') ?? 'mariadb-install-db'
    const method = '--auth-root-authentication-method=normal'
    return run(install, ['--no-defaults', `--datadir=${join(dir, 'data')}`, method])
  },
  args: ({ port, dir }) => [
    ...['--no-defaults', `--datadir=${join(dir, 'data')}`, `--port=${port}`, '--bind-address=127.0.0.1'],
    ...[`--socket=${join(dir, 's.sock')}`, `--pid-file=${join(dir, 'pid')}`, '--max-connections=300'],
    ...[
      // Durability of a private test server is of no use: without it tables are made several times faster.
      '--innodb-flush-log-at-trx-commit=0',
      '--innodb-flush-method=nosync',
      '--skip-innodb-doublewrite',
      '--innodb-buffer-pool-size=64M',
      '--character-set-server=utf8mb4',
    ],
  ],
  // The server speaks first: its greeting has the protocol's version in its fifth byte, an error has 255 there.
  ping: (port) => askOnce(port, undefined, (answer) => answer[4] === 10),
}
