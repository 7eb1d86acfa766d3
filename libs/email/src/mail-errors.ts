/**
 * What a failed call of a mail server means: for the mailbox, whether to try again; for a send, whether the mail may
 * be sent again. No error of the client libraries leaves this package as it is: they may quote what was sent.
 */
import { SendError, networkCodeOf, type SendOutcome } from '@botmesh/core'
import type { EmailSettings, ServerSettings } from './options.js'

/** Why the mailbox cannot be read. */
export type MailboxFailure =
  /** It will not get better by itself. */
  { kind: 'refused'; reason: string } | { kind: 'unreachable'; reason: string }

/** Thrown when a server has not answered in time. */
export class NoAnswerError extends Error {
  readonly code = 'NO_ANSWER'
}

const CERTIFICATE =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|ERR_TLS_CERT_ALTNAME_INVALID|CERT_HAS_EXPIRED|CERT_NOT_YET_VALID|CERT_UNTRUSTED)$/
/** Response codes of a login that may succeed later (RFC 5530). */
const LATER = new Set(['UNAVAILABLE', 'LIMIT', 'INUSE', 'SERVERBUG', 'OVERQUOTA', 'ALERT'])

interface ClientError {
  code?: string
  message?: string
  responseCode?: number
  response?: string
  responseText?: string
  serverResponseCode?: string
  authenticationFailed?: boolean
  mailboxMissing?: boolean
  command?: string
}

export function judgeMailbox(
  error: unknown,
  server: ServerSettings & { mailbox: string },
  secrets: ReadonlySet<string>,
): MailboxFailure {
  const failed = error as ClientError
  const place = `${server.host}:${server.port}`
  const certificate = certificateAdvice(error, 'imap', server)
  if (certificate !== null) return { kind: 'refused', reason: certificate }
  if (failed.authenticationFailed === true) {
    const code = failed.serverResponseCode ?? ''
    const said = clean(failed.responseText ?? failed.response ?? '', secrets)
    return LATER.has(code)
      ? { kind: 'unreachable', reason: `${place} does not let "${server.user}" in at present: ${said}` }
      : {
          kind: 'refused',
          reason: `${place} refuses the login of "${server.user}" (${said || 'no reason given'}): check imap.user and imap.password; providers with two-step login want an app password or an accessToken`,
        }
  }
  if (failed.mailboxMissing === true) {
    return { kind: 'refused', reason: `${place} has no mailbox "${server.mailbox}": check imap.mailbox` }
  }
  if (server.security === 'starttls' && /STARTTLS/i.test(failed.message ?? '')) {
    return {
      kind: 'refused',
      reason: `${place} offers no STARTTLS, so the password is not sent: check imap.port and imap.security`,
    }
  }
  const code = networkCodeOf(error)
  const text = failed.responseText ?? (error instanceof Error ? error.message : String(error))
  return {
    kind: 'unreachable',
    reason: clean(`${place}: ${text}${code === undefined ? '' : ` (${code})`}`, secrets),
  }
}

/**
 * @param sent `'body'`: the whole mail was written before it failed, so the server may have taken it.
 */
export function toSendError(settings: EmailSettings, error: unknown, sent: 'nothing' | 'body'): SendError {
  const { id: provider, smtp, secrets } = settings
  const failed = error as ClientError
  const said = clean(failed.response ?? (error instanceof Error ? error.message : String(error)), secrets)
  const cause = new Error(said)
  const fail = (message: string, outcome: SendOutcome, more: object = {}): SendError =>
    new SendError(message, { provider, outcome, ...more }, cause)
  const place = `${smtp.host}:${smtp.port}`
  const certificate = certificateAdvice(error, 'smtp', smtp)
  if (certificate !== null) return fail(`The mail was not sent: ${certificate}.`, 'final')
  const code = failed.responseCode
  if (code !== undefined && code >= 400) {
    const outcome = code >= 500 ? 'final' : 'retryable'
    const account =
      code === 421 || code === 454 || /^(AUTH|CONN|EHLO|HELO|MAIL FROM)/.test(failed.command ?? '')
    return fail(`${place} refused the mail: ${said}.${adviceFor(code, smtp)}`, outcome, {
      platformCode: String(code),
      ...(outcome === 'retryable' ? { scope: account ? ('account' as const) : ('chat' as const) } : {}),
    })
  }
  if (failed.code === 'EMESSAGE' && /size/i.test(failed.message ?? '')) {
    // The server says beforehand how much it takes, so nothing was written.
    return fail(`${place} does not take the mail: ${said}.${adviceFor(552, smtp)}`, 'final')
  }
  if (failed.code === 'EAUTH' || failed.code === 'ENOAUTH' || failed.code === 'EOAUTH2') {
    return fail(`${place} cannot be logged in to: ${said}.${adviceFor(535, smtp)}`, 'final')
  }
  const network = networkCodeOf(error) ?? 'no code'
  return sent === 'body'
    ? fail(
        `No answer from ${place} after the whole mail was written (${network}): it may have been delivered.`,
        'uncertain',
      )
    : fail(
        `${place} could not be reached, or went away before the mail was written (${network}): ${said}.`,
        'retryable',
      )
}

function certificateAdvice(error: unknown, option: string, server: ServerSettings): string | null {
  const failed = error as ClientError & { cause?: ClientError; _err?: ClientError }
  const code = [failed.code, failed.cause?.code, failed._err?.code].find(
    (one) => one !== undefined && CERTIFICATE.test(one),
  )
  const selfSigned = /self.signed certificate/i.test(failed.message ?? '')
  if (code === undefined && !selfSigned) return null
  const what = code ?? 'DEPTH_ZERO_SELF_SIGNED_CERT'
  return `the certificate of ${server.host}:${server.port} is not trusted (${what}): check ${option}.host, or give the certificate as ${option}.ca if it is one of your own`
}

function adviceFor(code: number, smtp: ServerSettings): string {
  switch (code) {
    case 530:
    case 534:
    case 535:
      return ` Check smtp.user ("${smtp.user}") and smtp.password; providers with two-step login want an app password or an accessToken.`
    case 550:
    case 551:
    case 553:
      return ' The recipient does not exist, or the server does not let this account write there.'
    case 552:
      return ' The mail is larger than the server takes, or the recipient’s mailbox is full: lower maxAttachmentBytes or send a link.'
    default:
      return ''
  }
}

/** Cuts secrets out, also as they are written on the wire. */
export function clean(text: string, secrets: ReadonlySet<string>): string {
  let cleaned = text
  for (const secret of secrets) {
    for (const form of [secret, Buffer.from(secret).toString('base64')])
      cleaned = cleaned.replaceAll(form, '***')
  }
  return cleaned.replace(/\s+/g, ' ').trim().slice(0, 500).replace(/\.$/, '')
}
