/** What errors of MongoDB and its driver mean. */
import {
  MongoCompatibilityError,
  MongoError,
  MongoNetworkError,
  MongoServerError,
  MongoServerSelectionError,
} from 'mongodb'
import { networkCodeOf } from '@botmesh/core'

export type Verdict =
  /** Can never work as it is configured: a `ConfigError`. `text` carries no secret. */
  | { sort: 'refused'; option: string; text: string }
  /** Nothing was stored; the same call may succeed at once. */
  | { sort: 'again' }
  /** The connection was lost or never there, or no majority has confirmed: the fate of the call is unknown. */
  | { sort: 'lost' }
  | { sort: 'too large' }
  | { sort: 'other' }

/** A document of this key is there already. */
export const DUPLICATE_KEY = 11000

const UNAUTHORIZED = 13
/** Not authenticated; the second one is Atlas's. */
const BAD_LOGIN = new Set([18, 8000])
/** Write conflict, and what meets an index that is just being made. */
const AGAIN = new Set([112, 117, 12587])
/** Not primary (any more), shutting down, no answer of the majority in time, interrupted by a change of state. */
const LOST = new Set([6, 7, 64, 79, 89, 91, 100, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436])
const NETWORK =
  /^E(CONNREFUSED|CONNRESET|CONNABORTED|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_AGAIN)$/
/** A document or a command beyond what the server takes. */
const TOO_LARGE = new Set([10334, 17419, 17420])

/** A call that the driver's own deadlines did not end: its fate is unknown. */
export class Overdue extends Error {
  constructor(limitMs: number) {
    super(`the driver did not end the call within ${limitMs} ms`)
    this.name = 'Overdue'
  }
}

export function judge(error: unknown): Verdict {
  if (error instanceof Overdue) return { sort: 'lost' }
  if (error instanceof MongoServerSelectionError) return judgeSelection(error)
  if (error instanceof MongoCompatibilityError)
    return {
      sort: 'refused',
      option: 'url',
      text: `this server's version is not supported (${error.message}).`,
    }
  if (error instanceof MongoServerError) return judgeAnswer(error)
  if (isTooLarge(error)) return { sort: 'too large' }
  if (error instanceof MongoNetworkError || isLabelled(error)) return { sort: 'lost' }
  // A connection that breaks while it is written to: the driver hands the socket's own error on.
  if (NETWORK.test(networkCodeOf(error) ?? '')) return { sort: 'lost' }
  return { sort: 'other' }
}

/** No server was found; the reason is in what the last attempts to connect met. */
function judgeSelection(error: MongoServerSelectionError): Verdict {
  for (const { error: reason } of error.reason?.servers.values() ?? []) {
    const verdict = reason && !(reason instanceof MongoServerSelectionError) ? judge(reason) : null
    if (verdict?.sort === 'refused') return verdict
  }
  return { sort: 'lost' }
}

function judgeAnswer(error: MongoServerError): Verdict {
  const code = Number(error.code)
  if (BAD_LOGIN.has(code))
    return { sort: 'refused', option: 'url', text: 'the user or its password is not accepted.' }
  if (code === UNAUTHORIZED) {
    return {
      sort: 'refused',
      option: 'url',
      text: 'the user lacks a right. It needs the role readWrite on the database, to make the collections and indexes once and to use them.',
    }
  }
  if (AGAIN.has(code)) return { sort: 'again' }
  if (TOO_LARGE.has(code) || isTooLarge(error)) return { sort: 'too large' }
  if (LOST.has(code) || isLabelled(error)) return { sort: 'lost' }
  return { sort: 'other' }
}

function isLabelled(error: unknown): boolean {
  if (!(error instanceof MongoError)) return false
  const labels = ['RetryableWriteError', 'RetryableReadError', 'ResetPool', 'SystemOverloadedError']
  return labels.some((label) => error.hasErrorLabel(label))
}

/** By the server's words or the driver's, or since the driver's buffer for one command was full. */
function isTooLarge(error: unknown): boolean {
  const { message = '', code } = (error ?? {}) as { message?: string; code?: unknown }
  return (
    code === 'ERR_OUT_OF_RANGE' ||
    /larger than the maximum size|BSONObj size|object to insert too large/i.test(message)
  )
}

export function isDuplicateKey(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === DUPLICATE_KEY
}
