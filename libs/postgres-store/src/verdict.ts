/** What errors of PostgreSQL and its driver mean. */
import type { Verdict } from '@botmesh/sql-store'
import { SilentConnectionError, isMisnamed } from './pg-pool.js'

/** Rolled back: serialization failure, deadlock, lock not available; a commit that answered ROLLBACK. */
const AGAIN = /^(40001|40P01|55P03)$/
/** Connection exceptions, shutting down or starting up, too many connections. */
const LOST = /^(08...|57P0[1-5]|53300|40003)$/
const NETWORK = /^E(CONNREFUSED|CONNRESET|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_AGAIN|NOENT)$/
const LOST_WORDS =
  /Connection terminated|timeout exceeded when trying to connect|not queryable|Connection ended|socket/i

export function judge(error: unknown): Verdict {
  if (error instanceof SilentConnectionError) return { sort: 'lost' }
  const { code = '', message = '', name = '' } = (error ?? {}) as Partial<Record<string, string>>
  if (AGAIN.test(code) || name === 'AbortedTransactionError' || isMisnamed(error)) return { sort: 'again' }
  if (LOST.test(code) || NETWORK.test(code)) return { sort: 'lost' }
  const refused = (text: string): Verdict => ({ sort: 'refused', option: 'url', text })
  switch (code) {
    case '28P01':
    case '28000':
      return refused('the user or its password is not accepted.')
    case '3D000':
      return refused('there is no such database.')
    case '42501':
      return refused(
        `the user lacks a right (${message}). To create or update the tables it needs CREATE on the schema once, later only SELECT, INSERT, UPDATE and DELETE on them.`,
      )
    case '3F000':
      return refused('there is no schema to create tables in: look at search_path.')
    case '':
      if (/does not support SSL|self.signed|certificate/i.test(message))
        return refused(`no encrypted connection (${message}).`)
      if (/password must be a string|SASL/.test(message)) return refused('a password is needed.')
      return LOST_WORDS.test(message) ? { sort: 'lost' } : { sort: 'other' }
    default:
      return { sort: 'other' }
  }
}
