/**
 * What a failed call of Discord's REST API means: for a send, whether the message may be sent again; for the
 * connection, whether to try again. No error of discord.js leaves this package as it is: they carry the request with
 * its address, which holds the token of an interaction.
 */
import { networkReasonOf, SendError, wasNeverSent } from '@botmesh/core'
import { DiscordAPIError, HTTPError, RateLimitError } from 'discord.js'

export type ConnectionFailure =
  /** Never again by itself. */
  | { kind: 'refused'; reason: string }
  | { kind: 'slow-down'; reason: string; retryAfterMs: number }
  | { kind: 'unreachable'; reason: string }

export function judgeConnection(error: unknown): ConnectionFailure {
  if (error instanceof RateLimitError) {
    return { kind: 'slow-down', reason: 'too many calls', retryAfterMs: error.retryAfter }
  }
  if (error instanceof DiscordAPIError) {
    if (error.status === 401) return { kind: 'refused', reason: ADVICE_FOR_TOKEN }
    return { kind: 'unreachable', reason: `Discord answered ${error.status}` }
  }
  if (error instanceof HTTPError) return { kind: 'unreachable', reason: `Discord answered ${error.status}` }
  return { kind: 'unreachable', reason: `network failure (${networkReasonOf(error) ?? 'no answer in time'})` }
}

const ADVICE_FOR_TOKEN =
  'Discord refuses the token: it is wrong or was reset. Take the current one from the Developer Portal (your application, Bot, Reset Token).'

/** What to do about Discord's own codes. */
const ADVICE: Record<string, string> = {
  10003: 'There is no such channel for this bot: it was deleted, or the chat id is not that of a channel.',
  10008: 'The message is gone.',
  30046: 'This message was edited too often; send a new one.',
  40005: 'The file is larger than this server takes: send a smaller one or a link.',
  40333: 'Discord blocks this address; check apiRoot and the proxy.',
  50001: 'The bot does not see this channel: invite it to the server, and give it View Channel there.',
  50007: 'The user takes no direct messages from the bot: they must share a server and allow them.',
  50013:
    'The bot lacks a permission in this channel: give its role Send Messages (in threads: Send Messages in Threads), and Embed Links and Attach Files for embeds and files.',
  50035: 'Discord refuses the form of the message.',
  50083: 'The thread is archived: unarchive it, or write in its channel.',
  160005: 'The thread is locked.',
}

export interface SendFailureContext {
  provider: string
  /** Cut out of whatever the error quotes. */
  token: string
  /** False: the request was not begun. */
  started: boolean
  /** A repeat of this send would be recognised by Discord. */
  repeatable: boolean
}

export function toSendError(what: string, error: unknown, context: SendFailureContext): SendError {
  const { provider } = context
  if (error instanceof SendError) return error
  const clean = (text: string) => text.replaceAll(context.token, '***')
  const cause = new Error(clean(error instanceof Error ? error.message : String(error)))
  if (error instanceof RateLimitError) {
    return new SendError(
      `Discord asks to wait ${Math.ceil(error.retryAfter)} ms before it takes ${what}.`,
      {
        provider,
        outcome: 'retryable',
        platformCode: '429',
        retryAfterMs: Math.ceil(error.retryAfter),
        scope: error.global ? 'account' : 'chat',
      },
      cause,
    )
  }
  if (error instanceof DiscordAPIError) {
    const said = clean(error.message).slice(0, 500)
    const advice =
      error.status === 401 ? ADVICE_FOR_TOKEN : (ADVICE[String(error.code)] ?? adviceFor(error.status))
    return new SendError(
      `Discord refused ${what} (${error.code}): ${said}.${advice === '' ? '' : ` ${advice}`}`,
      { provider, outcome: 'final', platformCode: String(error.code) },
      cause,
    )
  }
  if (error instanceof HTTPError) return serverFailure(what, error.status, context, cause)
  return networkFailure(what, error, context, cause)
}

function adviceFor(status: number): string {
  if (status === 413) return ADVICE['40005'] ?? ''
  return status === 403 ? (ADVICE['50013'] ?? '') : ''
}

/** 502 and 504 come from a gateway that lost sight of the request: it may have been carried out. */
function serverFailure(what: string, status: number, context: SendFailureContext, cause: Error): SendError {
  const unknown = (status === 502 || status === 504) && !context.repeatable
  return new SendError(
    `Discord could not answer ${what} (${status})${unknown ? '; it may have acted on it' : ''}.`,
    {
      provider: context.provider,
      outcome: unknown ? 'uncertain' : 'retryable',
      platformCode: String(status),
    },
    cause,
  )
}

function networkFailure(what: string, error: unknown, context: SendFailureContext, cause: Error): SendError {
  const { provider } = context
  const code = networkReasonOf(error)
  if (!context.started || wasNeverSent(error)) {
    return new SendError(
      `Discord could not be reached for ${what} (${code ?? 'not begun'}).`,
      { provider, outcome: 'retryable' },
      cause,
    )
  }
  return new SendError(
    `No usable answer from Discord to ${what} (${code ?? 'no code'}); it may have acted on it.`,
    { provider, outcome: 'uncertain' },
    cause,
  )
}
