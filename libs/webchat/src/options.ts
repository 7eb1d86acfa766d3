/** Options of the web chat, checked at construction: unknown names and impossible values are refused by name. */
import { randomBytes } from 'node:crypto'
import {
  checkedFor,
  ConfigError,
  describeValue,
  parseDuration,
  refuseUnknownOptions,
  requireText,
  type Duration,
} from '@botmesh/core'
import type { FileLimits } from './uploads.js'

export interface WebchatOptions {
  /** Names the account: `id` is `webchat:<account>`. Default `'default'`. */
  account?: string
  /** Where page and socket live: the page at `<path>/`, the socket at `<path>/ws`. Default `'/webchat'`. */
  path?: string
  /**
   * Signs the visitors' ids; the same on every replica, at least 16 characters. An array rotates it: the first
   * signs, all are accepted. Default: random, which no other replica and no restart recognises (a warning says so).
   */
  secret?: string | string[] | undefined
  /** Heading of the page. Default `'Chat'`. */
  title?: string
  /**
   * Origins whose pages may connect, such as `['https://shop.example']`; `'any'` switches the check off.
   * Default: only the origin that serves the page (the `Origin` header names the same host as `Host`).
   */
  allowedOrigins?: string[] | 'any'
  /** Sites that may show the page in a frame (CSP `frame-ancestors`). Default: none but its own origin. */
  frameAncestors?: string[]
  /** Largest frame a page may send; a larger one closes the socket (1009). Default 16384. */
  maxFrameBytes?: number
  /** Longest text of one message, in UTF-16 units. Default 4000. */
  maxTextLength?: number
  /** Messages of one visitor on one replica: `burst` at once, then `perMinute`. Default 10 and 60. */
  rateLimit?: { burst?: number; perMinute?: number }
  /** Sockets on this replica; further ones are refused with 503. Default 10000. */
  maxConnections?: number
  /** How often a socket is pinged and the log polled besides its hints. Default `'20s'`, 100 ms to 10 minutes. */
  heartbeat?: Duration
  /** Whether the page shows "typing" between an accepted message and the next answer. Default true. */
  typing?: boolean
  /** Files that visitors may send; false: none. Default: as `FileOptions` says. */
  files?: FileOptions | false
}

export interface FileOptions {
  /** Largest file. Default 2 MiB, at most 16 MiB. */
  maxBytes?: number
  /**
   * MIME types taken, by what the browser claims; `image/*` is every image (SVG too). Default: the usual photos, audio,
   * video, PDF, plain text, CSV and office documents.
   */
  types?: string[]
  /** Files of one visitor on one replica: `burst` at once, then `perMinute`. Default 3 and 6. */
  rateLimit?: { burst?: number; perMinute?: number }
  /** Uploads under way on this replica at a time, each holding up to `maxBytes` of memory. Default 16. */
  maxUploads?: number
  /** Files of all visitors together on this replica a minute, which bounds what the store is given. Default 60. */
  maxPerMinute?: number
  /** How long the store keeps a file for `download`. Default `'24h'`, one minute to 30 days. */
  keep?: Duration
}

export interface CheckedOptions {
  account: string
  path: string
  secrets: readonly string[]
  /** True: made up at construction. */
  secretIsRandom: boolean
  title: string
  allowedOrigins: readonly string[] | 'any' | 'same'
  frameAncestors: readonly string[]
  maxFrameBytes: number
  maxTextLength: number
  burst: number
  perMinute: number
  maxConnections: number
  heartbeatMs: number
  typing: boolean
  files: FileLimits | null
}

const KNOWN = [
  'account',
  'path',
  'secret',
  'title',
  'allowedOrigins',
  'frameAncestors',
  'maxFrameBytes',
  'maxTextLength',
  'rateLimit',
  'maxConnections',
  'heartbeat',
  'typing',
  'files',
] as const

const KNOWN_FILES = ['maxBytes', 'types', 'rateLimit', 'maxUploads', 'maxPerMinute', 'keep'] as const

const TYPES = [
  'image/jpeg',
  'image/png',
  'image/webp',
  'image/gif',
  'image/heic',
  'audio/*',
  'video/*',
  'application/pdf',
  'text/plain',
  'text/csv',
  'application/msword',
  'application/vnd.ms-excel',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  'application/vnd.oasis.opendocument.text',
  'application/vnd.oasis.opendocument.spreadsheet',
]

/** @throws ConfigError that names the option, the value given and what is accepted. */
export function checkOptions(options: WebchatOptions): CheckedOptions {
  return checkedFor('WebchatProvider', () => check(options))
}

function check(options: WebchatOptions): CheckedOptions {
  refuseUnknownOptions('WebchatProvider', options, KNOWN)
  const rate = options.rateLimit ?? {}
  refuseUnknownOptions('WebchatProvider rateLimit', rate, ['burst', 'perMinute'])
  return {
    account: checkAccount(options.account),
    path: checkPath(options.path),
    secrets: checkSecrets(options.secret),
    secretIsRandom: options.secret === undefined,
    title: requireText('title', options.title ?? 'Chat'),
    allowedOrigins: checkOrigins('allowedOrigins', options.allowedOrigins),
    frameAncestors: options.frameAncestors?.map((one) => checkOrigin('frameAncestors', one)) ?? [],
    maxFrameBytes: checkCount('maxFrameBytes', options.maxFrameBytes ?? 16_384, 512, 1_048_576),
    maxTextLength: checkCount('maxTextLength', options.maxTextLength ?? 4000, 1, 100_000),
    burst: checkCount('rateLimit.burst', rate.burst ?? 10, 1, 10_000),
    perMinute: checkCount('rateLimit.perMinute', rate.perMinute ?? 60, 1, 100_000),
    maxConnections: checkCount('maxConnections', options.maxConnections ?? 10_000, 1, 1_000_000),
    heartbeatMs: parseDuration('heartbeat', options.heartbeat ?? '20s', { minMs: 100, maxMs: 600_000 }),
    typing: options.typing ?? true,
    files: options.files === false ? null : checkFiles(options.files ?? {}),
  }
}

function checkFiles(files: FileOptions): FileLimits {
  refuseUnknownOptions('WebchatProvider files', files, KNOWN_FILES)
  const rate = files.rateLimit ?? {}
  refuseUnknownOptions('WebchatProvider files.rateLimit', rate, ['burst', 'perMinute'])
  return {
    maxBytes: checkCount('files.maxBytes', files.maxBytes ?? 2 * 1024 * 1024, 1, 16 * 1024 * 1024),
    types: checkTypes(files.types ?? TYPES),
    burst: checkCount('files.rateLimit.burst', rate.burst ?? 3, 1, 1000),
    perMinute: checkCount('files.rateLimit.perMinute', rate.perMinute ?? 6, 1, 10_000),
    maxUploads: checkCount('files.maxUploads', files.maxUploads ?? 16, 1, 1000),
    maxPerMinute: checkCount('files.maxPerMinute', files.maxPerMinute ?? 60, 1, 100_000),
    keepMs: parseDuration('files.keep', files.keep ?? '24h', { minMs: 60_000, maxMs: 30 * 86_400_000 }),
  }
}

function checkTypes(value: unknown): string[] {
  const accepted = "a list of MIME types such as ['image/*', 'application/pdf']"
  const isType = (one: unknown) => typeof one === 'string' && /^[\w.+-]+\/([\w.+-]+|\*)$/.test(one)
  if (Array.isArray(value) && value.length > 0 && value.every(isType)) {
    return value.map((one: string) => one.toLowerCase())
  }
  throw new ConfigError((what) => `${what} is ${describeValue(value)}; accepted: ${accepted}.`, {
    option: 'files.types',
    value,
    accepted,
  })
}

function checkAccount(value: unknown): string {
  const hint = 'letters, digits, dot, dash and underscore'
  const account = requireText('account', value ?? 'default', hint)
  if (/^[\w.-]+$/.test(account)) return account
  throw new ConfigError((what) => `${what} is ${describeValue(value)}; accepted: ${hint}.`, {
    option: 'account',
    value,
    accepted: hint,
  })
}

function checkPath(value: unknown): string {
  const hint = "a path such as '/webchat', without a slash at its end"
  const path = requireText('path', value ?? '/webchat', hint)
  if (/^(\/[\w.~-]+)+$/.test(path)) return path
  throw new ConfigError((what) => `${what} is ${describeValue(value)}; accepted: ${hint}.`, {
    option: 'path',
    value,
    accepted: hint,
  })
}

function checkSecrets(value: WebchatOptions['secret']): string[] {
  if (value === undefined) return [randomBytes(32).toString('base64url')]
  const secrets = Array.isArray(value) ? value : [value]
  const accepted = 'a string of at least 16 characters, or an array of them'
  if (secrets.length === 0 || secrets.some((one) => typeof one !== 'string' || one.length < 16)) {
    // The value itself stays out: it is a secret, if a poor one.
    throw new ConfigError((what) => `${what} is empty or too short; accepted: ${accepted}.`, {
      option: 'secret',
      accepted,
    })
  }
  return secrets
}

function checkOrigins(
  option: string,
  value: WebchatOptions['allowedOrigins'],
): CheckedOptions['allowedOrigins'] {
  if (value === undefined) return 'same'
  if (value === 'any') return 'any'
  if (!Array.isArray(value)) return [checkOrigin(option, value)]
  return value.map((one) => checkOrigin(option, one))
}

function checkOrigin(option: string, value: unknown): string {
  const accepted = "origins such as 'https://shop.example', without a path"
  if (typeof value === 'string' && URL.canParse(value)) {
    const url = new URL(value)
    if (/^https?:$/.test(url.protocol) && url.origin === value) return value
  }
  throw new ConfigError((what) => `${what} contains ${describeValue(value)}; accepted: ${accepted}.`, {
    option,
    value,
    accepted,
  })
}

function checkCount(option: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
  const accepted = `a whole number from ${min} to ${max}`
  throw new ConfigError((what) => `${what} is ${describeValue(value)}; accepted: ${accepted}.`, {
    option,
    value,
    accepted,
  })
}
