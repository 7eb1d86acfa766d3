/** Dovecot, for the e-mail transport: how to find, prepare, start and ask it. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { askOnce } from './ask.mjs'
import { findProgram } from './find.mjs'
import { giveTo, identityOf } from './identity.mjs'

/** Of every account of a private instance: whoever logs in with it has a mailbox. */
export const MAIL_PASSWORD = 'mailbox-password'

const USER = 'dovecot'

/** @type {import('./private-server.mjs').ServerDescription} */
export const dovecot = {
  name: 'dovecot',
  urlVariable: 'DOVECOT_URL',
  testUrlVariable: 'BOTMESH_DOVECOT_URL',
  testBinaryVariable: 'BOTMESH_DOVECOT',
  program: 'dovecot',
  places: ['/usr/sbin', '/usr/local/sbin', '/opt/homebrew/sbin'],
  user: USER,
  aptPackages: ['dovecot-imapd', 'dovecot-lmtpd'],
  otherWays: [
    'macOS: brew install dovecot',
    'Fedora: dnf install dovecot',
    'Alpine: apk add dovecot dovecot-lmtpd',
  ],
  url: (port) => `imap://127.0.0.1:${port}`,
  prepare: async (_program, dir, run) => {
    const identity = identityOf(USER)
    for (const place of ['run', 'state', 'mail']) {
      mkdirSync(join(dir, place))
      giveTo(join(dir, place), identity)
    }
    // A certificate of its own making: what clients have to refuse unless they are told of it.
    const openssl = findProgram('openssl') ?? 'openssl'
    await run(openssl, [
      ...[
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '30',
      ],
      ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'],
      ...['-keyout', join(dir, 'key.pem'), '-out', join(dir, 'cert.pem')],
    ])
    writeFileSync(join(dir, 'dovecot.conf'), configuration(dir))
    chmodSync(join(dir, 'dovecot.conf'), 0o644)
  },
  args: ({ port, dir }) => [
    ...['-F', '-c', join(dir, 'dovecot.conf')],
    ...['-o', `service/imap-login/inet_listener/imap/port=${port}`],
  ],
  // The server speaks first.
  ping: (port) => askOnce(port, undefined, (answer) => answer.toString().startsWith('* OK')),
}

/**
 * dovecot.conf with what differs from one instance to the next.
 * @param {string} dir
 */
function configuration(dir) {
  const { user, group } = whoRuns()
  return readFileSync(new URL('dovecot.conf', import.meta.url), 'utf8')
    .replaceAll('@DIR@', dir)
    .replaceAll('@USER@', user)
    .replaceAll('@GROUP@', group)
    .replaceAll('@PASSWORD@', MAIL_PASSWORD)
}

/** @returns {{ user: string, group: string }} names of whoever the server runs as */
function whoRuns() {
  const { uid } = identityOf(USER)
  const who = uid === undefined ? [] : [String(uid)]
  const name = (/** @type {string} */ what) =>
    execFileSync('id', [what, ...who])
      .toString()
      .trim()
  return { user: name('-un'), group: name('-gn') }
}
