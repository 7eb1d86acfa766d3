/** Options of the Telegram transport, checked at construction. */
import {
  checkedFor,
  ConfigError,
  describeValue,
  parseDuration,
  refuseUnknownOptions,
  requireOneOf,
  requireText,
  type Duration,
} from '@botmesh/core'

export interface TelegramWebhook {
  /** Telegram sends it back with each update: 16 to 256 of A-Z, a-z, 0-9, _ and -. */
  secret: string
  /** Public address of your server, https (but for an `apiRoot` of your own). If given, `start` registers the webhook; else you do it once yourself. */
  url?: string
  /** Appended to a `url` that has no path of its own. Default `/webhooks/telegram/<account>`, as the Nest module. */
  path?: string
}

export interface TelegramOptions {
  /** From @BotFather: `<bot id>:<secret>`. */
  token: string
  /** Name of the account in chat keys; default: the bot's id. The same on every replica. */
  account?: string
  /**
   * `'polling'`: one replica polls, the others stand by. `'webhook'`: every replica receives. Default: `'webhook'` if
   * `webhook` is given, else `'polling'`.
   */
  mode?: 'polling' | 'webhook'
  webhook?: TelegramWebhook
  /** Default `https://api.telegram.org`; your own Bot API server otherwise. */
  apiRoot?: string
  /**
   * Corrected messages: `'ignore'` (default: a correction would be taken for the answer to the next question) or
   * `'deliver'` as messages with `editOf`.
   */
  edits?: 'ignore' | 'deliver'
  /** How long one long poll waits for updates; default 30 s, whole seconds. */
  pollTimeoutMs?: Duration
  /** How long one call that sends may take; default 30 s. */
  sendTimeoutMs?: Duration
  /** Largest webhook body accepted, in bytes; default 1 MiB. */
  maxBodyBytes?: number
}

export interface TelegramSettings {
  id: string
  token: string
  botId: number
  apiRoot: string
  edits: 'ignore' | 'deliver'
  pollTimeoutS: number
  sendTimeoutMs: number
  maxBodyBytes: number
  /** Null: long polling. */
  webhook: { secret: string; url: string | null } | null
}

const PUBLIC_API = 'https://api.telegram.org'

const KNOWN = [
  'token',
  'account',
  'mode',
  'webhook',
  'apiRoot',
  'edits',
  'pollTimeoutMs',
  'sendTimeoutMs',
  'maxBodyBytes',
] as const satisfies readonly (keyof TelegramOptions)[]

/** @throws ConfigError that names the option; never with a secret's value. */
export function readOptions(options: TelegramOptions): TelegramSettings {
  return checkedFor('TelegramProvider', () => read(options))
}

function read(options: TelegramOptions): TelegramSettings {
  refuseUnknownOptions('TelegramProvider', options, KNOWN)
  const token = typeof options.token === 'string' && /^\d+:[\w-]+$/.test(options.token) ? options.token : null
  if (token === null) {
    refuse('token', hidden(options.token), 'the token from @BotFather (is the environment variable set?)')
  }
  const botId = token.slice(0, token.indexOf(':'))
  const account = options.account === undefined ? botId : requireText('account', options.account)
  const mode = requireOneOf('mode', options.mode ?? (options.webhook === undefined ? 'polling' : 'webhook'), [
    'polling',
    'webhook',
  ])
  const maxBodyBytes = options.maxBodyBytes ?? 1024 * 1024
  if (!Number.isSafeInteger(maxBodyBytes) || maxBodyBytes < 1024) {
    refuse('maxBodyBytes', maxBodyBytes, 'a whole number of bytes, at least 1024')
  }
  const apiRoot = requireUrl('apiRoot', options.apiRoot ?? PUBLIC_API).replace(/\/+$/, '')
  const pollTimeoutMs = parseDuration('pollTimeoutMs', options.pollTimeoutMs ?? '30s', {
    minMs: 1000,
    maxMs: 50_000,
  })
  return {
    id: `telegram:${account}`,
    token,
    botId: Number(botId),
    apiRoot,
    edits: requireOneOf('edits', options.edits ?? 'ignore', ['ignore', 'deliver']),
    pollTimeoutS: Math.floor(pollTimeoutMs / 1000),
    sendTimeoutMs: parseDuration('sendTimeoutMs', options.sendTimeoutMs ?? '30s', { minMs: 100 }),
    maxBodyBytes,
    webhook:
      mode === 'webhook'
        ? readWebhook(options.webhook, account, apiRoot !== PUBLIC_API)
        : refuseIdleWebhook(options.webhook),
  }
}

function readWebhook(
  webhook: TelegramWebhook | undefined,
  account: string,
  ownApi: boolean,
): TelegramSettings['webhook'] {
  if (typeof webhook !== 'object' || webhook === null) {
    refuse('webhook', webhook, "{ secret, url?, path? }, as mode 'webhook' needs a secret")
  }
  refuseUnknownOptions('TelegramProvider webhook', webhook, ['secret', 'url', 'path'])
  const { secret, url, path } = webhook
  if (typeof secret !== 'string' || !/^[\w-]{16,256}$/.test(secret)) {
    refuse(
      'webhook.secret',
      hidden(secret),
      '16 to 256 of A-Z, a-z, 0-9, _ and -, as whoever guesses it may write as any user (is the environment variable set?)',
    )
  }
  if (url === undefined) {
    if (path !== undefined)
      refuse('webhook.path', path, 'nothing without webhook.url: the path completes that address')
    return { secret, url: null }
  }
  const address = new URL(requireUrl('webhook.url', url))
  if (address.protocol === 'http:' && !ownApi) {
    refuse(
      'webhook.url',
      url,
      'an https URL: Telegram delivers to no other (a Bot API server of your own, `apiRoot`, may)',
    )
  }
  if (address.pathname === '/') address.pathname = path ?? `/webhooks/telegram/${encodeURIComponent(account)}`
  else if (path !== undefined) refuse('webhook.path', path, 'nothing where webhook.url already has a path')
  return { secret, url: address.href }
}

function refuseIdleWebhook(webhook: TelegramWebhook | undefined): null {
  if (webhook !== undefined) refuse('webhook', webhook, "nothing in mode 'polling'")
  return null
}

function requireUrl(option: string, value: unknown): string {
  if (typeof value === 'string' && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol))
    return value
  return refuse(option, value, 'an http(s) URL')
}

/** A secret as an error may show it: only what kind of thing it is. */
function hidden(value: unknown): unknown {
  return typeof value === 'string' ? (value === '' ? '' : '(hidden)') : value
}

function refuse(option: string, value: unknown, accepted: string): never {
  throw new ConfigError((what) => `${what} is ${describeValue(value)}; accepted: ${accepted}.`, {
    option,
    value,
    accepted,
  })
}
