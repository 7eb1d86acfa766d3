/**
 * What a refusal of the Graph API means for the message: send again, never, or nobody knows (scenario 16).
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
  1200: { retryAfterMs: 5_000, scope: 'account', advice: 'the message could not be sent for a moment' },
  80001: { retryAfterMs: 60_000, scope: 'account', advice: "the page's call limit is reached" },
  80002: { retryAfterMs: 60_000, scope: 'account', advice: "the Instagram account's call limit is reached" },
  80006: { retryAfterMs: 60_000, scope: 'account', advice: "the page's limit of messages is reached" },
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

const UNKNOWN_ID = "the account's id does not exist, or the token may not use it"

/** Codes that no repetition mends, with what would. Codes that are in neither table are judged by their range. */
const REFUSALS: Readonly<Record<number, string>> = {
  0: 'the access token is not valid any more: make a new one',
  3: "the app lacks a permission: check the token's permissions",
  10: "the app lacks a permission: check the token's permissions",
  33: UNKNOWN_ID,
  100: 'a parameter is not accepted',
  190: 'the access token is expired or revoked: make a new one',
  230: "the app lacks a permission: check the token's permissions (pages_messaging)",
  551: 'this person takes no messages from this account: blocked, turned off, or gone',
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

const OUTSIDE_WINDOW =
  `the user wrote last more than 24 hours ago: wait for their next message, or, for a human's
answer within 7 days, send with platform: { tag: 'HUMAN_AGENT' }`.replace('\n', ' ')
const NOT_LIVE =
  'the app is in development or not reviewed: it may write only to people who have a role in it'

/**
 * Subcodes, for codes so general that they say too little (10, 100, 200, …). `uncertain`: the message may have
 * arrived in spite of the error.
 */
const SUBCODES: Readonly<Record<number, { outcome: SendOutcome; advice: string }>> = {
  33: { outcome: 'final', advice: UNKNOWN_ID },
  99: { outcome: 'final', advice: "the app lacks a permission: check the token's permissions" },
  1357046: { outcome: 'uncertain', advice: 'the platform has lost its own answer' },
  1545041: { outcome: 'final', advice: REFUSALS[551]! },
  1893063: { outcome: 'final', advice: 'the page is kept from sending for a while: see its support inbox' },
  2018001: {
    outcome: 'final',
    advice: 'no matching user: ids are made for one page or account, this one belongs to another or is gone',
  },
  2018008: {
    outcome: 'final',
    advice: 'the platform could not fetch the file: check that the link is public',
  },
  2018021: { outcome: 'final', advice: 'the page may not write to phone numbers' },
  2018027: { outcome: 'final', advice: NOT_LIVE },
  2018028: { outcome: 'final', advice: NOT_LIVE },
  2018047: { outcome: 'final', advice: 'the file was not accepted: check its type and size' },
  2018065: { outcome: 'final', advice: OUTSIDE_WINDOW },
  2018108: { outcome: 'final', advice: OUTSIDE_WINDOW },
  2018109: { outcome: 'final', advice: 'the file is too large' },
  2018278: { outcome: 'final', advice: OUTSIDE_WINDOW },
  2534022: { outcome: 'final', advice: OUTSIDE_WINDOW },
}

/** True for codes of one messenger (WhatsApp's have six digits): no subcode makes them clearer. */
export function saysEnough(code: number): boolean {
  return code >= 100_000
}

/** @param code Meta's own code, undefined if the answer had none. @param retryAfterMs what the answer asked for. */
export function judgeGraphError(answer: {
  status: number
  code?: number | undefined
  subcode?: number | undefined
  isTransient?: boolean | undefined
  retryAfterMs?: number | undefined
}): GraphVerdict {
  const { status, code, subcode, retryAfterMs } = answer
  const special = subcode === undefined || saysEnough(code ?? 0) ? undefined : SUBCODES[subcode]
  if (special !== undefined) return special
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
