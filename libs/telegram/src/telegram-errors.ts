/**
 * What a failed Bot API call means: for a send, whether the message may be sent again; for the connection, whether
 * and when to try again. No error of grammY leaves this package as it is: those of the network carry the address,
 * and the address carries the token.
 */
import { networkReasonOf, ProviderError, SendError, wasNeverSent } from '@botmesh/core'
import { GrammyError, HttpError } from 'grammy'

/** Why the connection does not work. */
export type ConnectionFailure =
  /** The token is wrong or revoked: never again. */
  | { kind: 'refused'; reason: string }
  /** Another process polls with this token: it was there later, so this one goes. */
  | { kind: 'conflict'; reason: string }
  /** A webhook is registered: Telegram does not let anybody poll. */
  | { kind: 'webhook-set'; reason: string }
  | { kind: 'slow-down'; reason: string; retryAfterMs: number }
  | { kind: 'unreachable'; reason: string }

export function judgeConnection(error: unknown): ConnectionFailure {
  if (error instanceof ProviderError) return { kind: 'unreachable', reason: error.details.reason }
  if (!(error instanceof GrammyError)) {
    return {
      kind: 'unreachable',
      reason: `network failure (${networkReasonOf(error) ?? 'no answer in time'})`,
    }
  }
  const reason = `Telegram answered ${error.error_code}: ${error.description}`
  switch (error.error_code) {
    case 401:
    case 404:
      return { kind: 'refused', reason: 'the token is wrong or revoked: ask @BotFather for the current one' }
    case 409:
      return { kind: /webhook/i.test(error.description) ? 'webhook-set' : 'conflict', reason }
    case 429:
      return { kind: 'slow-down', reason, retryAfterMs: retryAfterMsOf(error) }
    default:
      return { kind: 'unreachable', reason }
  }
}

/** @param token is cut out of whatever the error quotes. */
export function toSendError(provider: string, method: string, error: unknown, token: string): SendError {
  const clean = (text: string) => text.replaceAll(token, '***')
  const cause = new Error(clean(error instanceof Error ? error.message : String(error)))
  if (error instanceof GrammyError) {
    const { error_code: code, description } = error
    const outcome = code === 429 || code >= 500 ? 'retryable' : 'final'
    return new SendError(
      `Telegram refused ${method} (${code}): ${clean(description)}.${adviceFor(error)}`,
      {
        provider,
        outcome,
        platformCode: String(code),
        ...(code === 429 ? { retryAfterMs: retryAfterMsOf(error), scope: 'chat' as const } : {}),
      },
      cause,
    )
  }
  const code = error instanceof HttpError ? networkReasonOf(error) : undefined
  return wasNeverSent(error)
    ? new SendError(
        `Telegram could not be reached for ${method} (${code}).`,
        { provider, outcome: 'retryable' },
        cause,
      )
    : new SendError(
        `No usable answer from Telegram to ${method} (${code ?? 'no code'}); it may have acted on it.`,
        { provider, outcome: 'uncertain' },
        cause,
      )
}

function adviceFor(error: GrammyError): string {
  const moved = error.parameters.migrate_to_chat_id
  if (moved !== undefined) return ` The group became the supergroup ${moved}: write there.`
  if (error.error_code === 401 || error.error_code === 404) return ' Check the token with @BotFather.'
  if (error.error_code === 403) return ' The user blocked the bot, or it is not in that chat any more.'
  return ''
}

function retryAfterMsOf(error: GrammyError): number {
  return (error.parameters.retry_after ?? 1) * 1000
}
