/** What errors of MySQL, MariaDB and their driver mean. */
import type { Verdict } from '@botmesh/sql-store'
import { SilentConnectionError } from './mysql-pool.js'

/** Deadlock; a lock was waited for too long (the whole transaction is run again); record changed since last read. */
const AGAIN = new Set([1213, 1205, 1020])
/** Too many connections, shutdown, killed, aborted. */
const LOST = new Set([1040, 1053, 1152, 1158, 1159, 1160, 1161, 1184, 1317, 1927, 2006, 2013, 3169, 4031])
const LOST_CODE =
  /^(PROTOCOL_\w+|E(CONNREFUSED|CONNRESET|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_AGAIN|NOENT))$/
/** Of the user's rights: access to a database, a table, a column, a statement. */
const RIGHTS = new Set([1044, 1142, 1143, 1227, 1370])

export function judge(error: unknown): Verdict {
  if (error instanceof SilentConnectionError) return { sort: 'lost' }
  const {
    errno = 0,
    code = '',
    message = '',
  } = (error ?? {}) as {
    errno?: number
    code?: string
    message?: string
  }
  if (AGAIN.has(errno)) return { sort: 'again' }
  if (LOST.has(errno) || LOST_CODE.test(code)) return { sort: 'lost' }
  if (/Can't add new command when connection is in closed state|Pool is closed/.test(message))
    return { sort: 'lost' }
  const refused = (text: string): Verdict => ({ sort: 'refused', option: 'url', text })
  if (errno === 1045 || errno === 1698) return refused('the user or its password is not accepted.')
  if (errno === 1049) return refused('there is no such database.')
  if (errno === 1046) return refused('no database is chosen: name one in the URL.')
  if (RIGHTS.has(errno)) {
    return refused(
      `the user lacks a right (${message}). To create or update the tables it needs CREATE and INDEX once, later only SELECT, INSERT, UPDATE and DELETE on them.`,
    )
  }
  if (/SSL|certificate|secure connection/i.test(message) || code === 'HANDSHAKE_NO_SSL_SUPPORT') {
    return refused(`no encrypted connection (${message}).`)
  }
  return { sort: 'other' }
}
