/** Options that every transport on Meta's Graph API has, checked at construction. */
import { ConfigError, describeValue, parseDuration, requireText, type Duration } from '@botmesh/core'

export interface GraphOptions {
  /** Name of the account in chat keys; default: the platform's id of it. The same on every replica. */
  account?: string
  /** Goes into a header only. */
  accessToken: string
  /** Signs the webhooks (app dashboard, basic settings). */
  appSecret: string
  /** What you typed as "verify token" when you subscribed the webhook. */
  verifyToken: string
  /** Where the API is; the default is the platform's. */
  graphUrl?: string
  /** Default `v23.0`. */
  apiVersion?: string
  /** Largest webhook body accepted, in bytes; default 3 MiB, the platform's own limit. */
  maxBodyBytes?: number
  /** How long one call of the Graph API may take; default 15 s. Uploads and downloads have four times as long. */
  sendTimeoutMs?: Duration
}

/** The names of the options above, for the check of unknown ones. */
export const GRAPH_OPTIONS = [
  'account',
  'accessToken',
  'appSecret',
  'verifyToken',
  'graphUrl',
  'apiVersion',
  'maxBodyBytes',
  'sendTimeoutMs',
] as const satisfies readonly (keyof GraphOptions)[]

export interface CommonSettings {
  /** `kind:account`. */
  id: string
  accessToken: string
  appSecret: string
  verifyToken: string
  graphUrl: string
  apiVersion: string
  maxBodyBytes: number
  sendTimeoutMs: number
}

/**
 * @param given.kind of the transport, the first part of its id.
 * @param given.accountId the platform's id of the account, checked already.
 * @throws ConfigError that names the option; never with a secret's value.
 */
export function readGraphOptions(
  options: GraphOptions,
  given: { kind: string; accountId: string; graphUrl: string },
): CommonSettings {
  const apiVersion = options.apiVersion ?? 'v23.0'
  if (!/^v\d+\.\d+$/.test(apiVersion)) refuse('apiVersion', apiVersion, "a version such as 'v23.0'")
  const maxBodyBytes = options.maxBodyBytes ?? 3 * 1024 * 1024
  if (!Number.isSafeInteger(maxBodyBytes) || maxBodyBytes < 1024) {
    refuse('maxBodyBytes', maxBodyBytes, 'a whole number of bytes, at least 1024')
  }
  const account = options.account === undefined ? given.accountId : requireText('account', options.account)
  return {
    id: `${given.kind}:${account}`,
    accessToken: requireSecret('accessToken', options.accessToken),
    appSecret: requireSecret('appSecret', options.appSecret),
    verifyToken: requireSecret('verifyToken', options.verifyToken),
    graphUrl: requireUrl(options.graphUrl ?? given.graphUrl),
    apiVersion,
    maxBodyBytes,
    sendTimeoutMs: parseDuration('sendTimeoutMs', options.sendTimeoutMs ?? '15s', { minMs: 100 }),
  }
}

/** @throws ConfigError unless it is a function or undefined. */
export function refuseNoFunction(option: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'function') refuse(option, value, 'a function')
}

/** An undefined secret is most often an environment variable that is not set: say so. */
function requireSecret(option: string, value: unknown): string {
  return requireText(
    option,
    typeof value === 'string' ? value : undefined,
    'a non-empty string (is the environment variable set?)',
  )
}

function requireUrl(value: string): string {
  if (!URL.canParse(value) || !/^https?:$/.test(new URL(value).protocol)) {
    refuse('graphUrl', value, 'an http(s) URL')
  }
  return value.replace(/\/+$/, '')
}

function refuse(option: string, value: unknown, accepted: string): never {
  throw new ConfigError((what) => `${what} is ${describeValue(value)}; accepted: ${accepted}.`, {
    option,
    value,
    accepted,
  })
}
