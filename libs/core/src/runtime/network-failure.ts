/**
 * Reads a failed HTTP call: was the request certainly not made (send again), or may the other side have it
 * (uncertain)? Works on the errors of Node's own fetch and of clients on `node:http`.
 */

/** Codes raised before a byte of the request was written: no address, no connection, no TLS session. */
const BEFORE_WRITING = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EAI_FAIL',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'EPROTO',
])

/** True only if the request cannot have reached the other side. */
export function wasNeverSent(error: unknown): boolean {
  const codes = codesOf(error)
  return codes.length > 0 && codes.every((code) => BEFORE_WRITING.has(code))
}

/** The most telling code of a network error, such as `ECONNRESET`; undefined if it has none. */
export function networkCodeOf(error: unknown): string | undefined {
  return codesOf(error)[0]
}

const UNTRUSTED =
  'the certificate is not trusted: check the address, or name its authority in NODE_EXTRA_CA_CERTS'
const EXPIRED = 'the certificate is out of date, or the clock of this machine is wrong'
/** What to do about failures that do not mend themselves. */
const ADVICE: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is that of another host: check the address',
  CERT_HAS_EXPIRED: EXPIRED,
  CERT_NOT_YET_VALID: EXPIRED,
  EPROTO:
    'TLS could not be agreed on: check that the address and its port speak it, in a version that both know',
  ENOTFOUND: 'there is no such host: check the address',
}

/** The code of a network error with what to do about it, for messages; undefined if it has no code. */
export function networkReasonOf(error: unknown): string | undefined {
  const code = networkCodeOf(error)
  const advice = code === undefined ? undefined : ADVICE[code]
  return advice === undefined ? code : `${code}: ${advice}`
}

/** Codes of an error or, if it has none, of what it wraps: `cause`, grammY's `error`, the members of an aggregate. */
function codesOf(error: unknown, depth = 0): string[] {
  if (typeof error !== 'object' || error === null || depth > 4) return []
  const { code, syscall, errors, cause, error: inner } = error as Record<string, unknown>
  if (Array.isArray(errors) && errors.length > 0) return errors.flatMap((one) => codesOf(one, depth + 1))
  if (typeof code === 'string') return [code === 'ETIMEDOUT' && syscall === 'connect' ? 'ECONNREFUSED' : code]
  return [...codesOf(cause, depth + 1), ...codesOf(inner, depth + 1)]
}
