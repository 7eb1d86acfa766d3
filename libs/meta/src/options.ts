/** Options of the WhatsApp Cloud API transport, checked at construction. */
import {
  ConfigError,
  describeValue,
  parseDuration,
  refuseUnknownOptions,
  requireText,
  type Duration,
} from '@botmesh/core'
import type { MetaStatus } from './parse-inbound.js'

export interface MetaOptions {
  /** The number's id in the Graph API (not the number itself). */
  phoneNumberId: string
  /** Name of the account in chat keys; default: `phoneNumberId`. The same on every replica. */
  account?: string
  /** A system user's token with `whatsapp_business_messaging`. */
  accessToken: string
  /** Signs the webhooks (app dashboard, basic settings). */
  appSecret: string
  /** What you typed as "verify token" when you subscribed the webhook. */
  verifyToken: string
  /** Default `https://graph.facebook.com`. */
  graphUrl?: string
  /** Default `v23.0`. */
  apiVersion?: string
  /** Largest webhook body accepted, in bytes; default 3 MiB, the platform's own limit. */
  maxBodyBytes?: number
  /** How long one call of the Graph API may take; default 15 s. */
  sendTimeoutMs?: Duration
  /** What became of a message sent earlier: sent, delivered, read, failed. Not waited for; a failure is reported. */
  onStatus?: (status: MetaStatus) => unknown
}

export interface MetaSettings {
  id: string
  phoneNumberId: string
  accessToken: string
  appSecret: string
  verifyToken: string
  graphUrl: string
  apiVersion: string
  maxBodyBytes: number
  sendTimeoutMs: number
  onStatus: MetaOptions['onStatus']
}

const KNOWN = [
  'phoneNumberId',
  'account',
  'accessToken',
  'appSecret',
  'verifyToken',
  'graphUrl',
  'apiVersion',
  'maxBodyBytes',
  'sendTimeoutMs',
  'onStatus',
] as const satisfies readonly (keyof MetaOptions)[]

/** @throws ConfigError that names the option; never with a secret's value. */
export function readOptions(options: MetaOptions): MetaSettings {
  refuseUnknownOptions('MetaProvider', options, KNOWN)
  const phoneNumberId = requireText(
    'phoneNumberId',
    options.phoneNumberId,
    "the number's id in the Graph API (is the environment variable set?)",
  )
  const apiVersion = options.apiVersion ?? 'v23.0'
  if (!/^v\d+\.\d+$/.test(apiVersion)) refuse('apiVersion', apiVersion, "a version such as 'v23.0'")
  const maxBodyBytes = options.maxBodyBytes ?? 3 * 1024 * 1024
  if (!Number.isSafeInteger(maxBodyBytes) || maxBodyBytes < 1024) {
    refuse('maxBodyBytes', maxBodyBytes, 'a whole number of bytes, at least 1024')
  }
  if (options.onStatus !== undefined && typeof options.onStatus !== 'function') {
    refuse('onStatus', options.onStatus, 'a function')
  }
  return {
    id: `meta:${options.account === undefined ? phoneNumberId : requireText('account', options.account)}`,
    phoneNumberId,
    accessToken: requireSecret('accessToken', options.accessToken),
    appSecret: requireSecret('appSecret', options.appSecret),
    verifyToken: requireSecret('verifyToken', options.verifyToken),
    graphUrl: requireUrl(options.graphUrl ?? 'https://graph.facebook.com'),
    apiVersion,
    maxBodyBytes,
    sendTimeoutMs: parseDuration('sendTimeoutMs', options.sendTimeoutMs ?? '15s', { minMs: 100 }),
    onStatus: options.onStatus,
  }
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
  throw new ConfigError(`Option "${option}" is ${describeValue(value)}; accepted: ${accepted}.`, {
    option,
    value,
    accepted,
  })
}
