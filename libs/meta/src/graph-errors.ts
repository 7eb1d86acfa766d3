/**
 * What a refusal of the Graph API means for the message: send again, never, or nobody knows (API.md, scenario 16).
 * The code decides; HTTP status only where Meta gave no code, or one that is not in these tables.
 */
import type { SendOutcome } from '@botmesh/core'

export interface GraphVerdict {
  outcome: SendOutcome
  retryAfterMs?: number
  scope?: 'chat' | 'account'
  /** What the operator can do; empty if nothing is known. */
  advice: string
}

interface Pause {
  retryAfterMs: number
  scope: 'chat' | 'account'
  advice: string
}

/** Refused now, welcome later. The pauses are used where the answer itself names none. */
const PAUSES: Readonly<Record<number, Pause>> = {
  1: { retryAfterMs: 2_000, scope: 'account', advice: 'the API failed for a moment' },
  2: { retryAfterMs: 5_000, scope: 'account', advice: 'the API is down for a moment' },
  4: { retryAfterMs: 60_000, scope: 'account', advice: "the app's hourly call limit is reached" },
  17: { retryAfterMs: 60_000, scope: 'account', advice: "the user's call limit is reached" },
  32: { retryAfterMs: 60_000, scope: 'account', advice: "the page's call limit is reached" },
  341: { retryAfterMs: 60_000, scope: 'account', advice: "the app's limit is reached" },
  613: { retryAfterMs: 60_000, scope: 'account', advice: 'the call limit is reached' },
  80007: { retryAfterMs: 60_000, scope: 'account', advice: "the business account's call limit is reached" },
  130429: { retryAfterMs: 1_000, scope: 'account', advice: "the number's messages per second are used up" },
  131000: { retryAfterMs: 5_000, scope: 'account', advice: 'the platform failed for an unknown reason' },
  131016: { retryAfterMs: 5_000, scope: 'account', advice: 'the service is overloaded' },
  131048: {
    retryAfterMs: 3_600_000,
    scope: 'account',
    advice: 'too many messages of this number were blocked or reported: check its quality rating',
  },
  131056: {
    retryAfterMs: 6_000,
    scope: 'chat',
    advice: 'this user gets about one message in six seconds, with short bursts',
  },
  131057: { retryAfterMs: 60_000, scope: 'account', advice: 'the account is in maintenance' },
  133004: { retryAfterMs: 10_000, scope: 'account', advice: 'the server is down for a moment' },
  133016: { retryAfterMs: 3_600_000, scope: 'account', advice: 'the number was registered too often' },
}

/** Codes that no repetition mends, with what would. Codes that are in neither table are judged by their range. */
const REFUSALS: Readonly<Record<number, string>> = {
  0: 'the access token is not valid any more: make a new one',
  3: "the app lacks a permission: check the token's permissions",
  10: "the app lacks a permission: check the token's permissions",
  33: 'phoneNumberId does not exist, or the token may not use it',
  100: 'a parameter is not accepted',
  190: 'the access token is expired or revoked: make a new one',
  368: 'the account is blocked for breaking a policy',
  130472: 'the user is part of an experiment and gets no marketing messages',
  131005: 'the token may not do this',
  131008: 'a parameter is missing',
  131009: 'a parameter has a value that is not accepted',
  131021: 'the number cannot write to itself',
  131026: 'the user cannot be reached: no WhatsApp, too old a version, or terms not accepted',
  131030: 'test numbers write only to recipients on their list: add this one',
  131031: 'the business account is locked',
  131037: 'the display name is not approved yet',
  131042: 'there is a payment problem: check the account in the business settings',
  131045: 'the number is not registered with the Cloud API',
  131047: 'the user wrote last more than 24 hours ago: send a template',
  131049: 'the platform held a marketing message back from this user: try days later, not again now',
  131050: 'the user does not want marketing messages',
  131051: 'this kind of message is not supported',
  131052: 'the media of the user could not be fetched',
  131053: 'the media was not accepted: check its type, size and link',
  132000: 'the number of variables does not fit the template',
  132001: 'the template does not exist in this language, or is not approved yet',
  132005: 'the template with its variables filled in is too long',
  132007: "the template's content breaks a policy",
  132012: 'a variable has the wrong form for this template',
  132015: 'the template is paused for low quality: edit it',
  132016: 'the template is disabled for good: make another one',
  133010: 'the number is not registered with the Cloud API',
  135000: 'the parameters do not fit together',
}

/** @param code Meta's own code, undefined if the answer had none. @param retryAfterMs what the answer asked for. */
export function judgeGraphError(answer: {
  status: number
  code?: number | undefined
  isTransient?: boolean | undefined
  retryAfterMs?: number | undefined
}): GraphVerdict {
  const { status, code, retryAfterMs } = answer
  const pause = code === undefined ? undefined : PAUSES[code]
  if (pause !== undefined) {
    return { outcome: 'retryable', ...pause, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }
  }
  const refusal = code === undefined ? undefined : REFUSALS[code]
  if (refusal !== undefined) return { outcome: 'final', advice: refusal }
  if (code !== undefined && code >= 200 && code <= 299) {
    return { outcome: 'final', advice: "the app lacks a permission: check the token's permissions" }
  }
  if (status === 429) {
    return { outcome: 'retryable', retryAfterMs: retryAfterMs ?? 5_000, scope: 'account', advice: '' }
  }
  if (answer.isTransient === true)
    return { outcome: 'retryable', retryAfterMs: retryAfterMs ?? 2_000, advice: '' }
  if (status >= 500) {
    // A gateway's 5xx says nothing about what happened behind it.
    return { outcome: 'uncertain', advice: '' }
  }
  return { outcome: 'final', advice: '' }
}
