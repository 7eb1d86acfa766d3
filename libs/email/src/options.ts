/** Options of the e-mail transport, checked at construction. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
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
import { readAddress, type OwnMark } from './addresses.js'

/** How to reach one server. */
export interface MailServer {
  host: string
  /** Default: 993 or 143 for IMAP, 465 or 587 for SMTP, by `security`. */
  port?: number
  /**
   * `'tls'` (default): encrypted from the first byte. `'starttls'`: encrypted before the password is sent, or refused.
   * `'none'`: in clear text; for servers on this machine.
   */
  security?: 'tls' | 'starttls' | 'none'
  /** Default: the bot's address. */
  user?: string
  password?: string
  /** OAuth 2 instead of a password. A function is asked for a fresh one at each connection. */
  accessToken?: string | (() => string | Promise<string>)
  /** Certificates (PEM) to trust besides the system's: for a server with one of its own making. */
  ca?: string | string[]
}

export interface EmailOptions {
  /** The bot's own address: what it writes from. */
  address: string
  /** Shown beside the address. */
  name?: string
  /** Name of the account in chat keys; default: the address. The same on every replica. */
  account?: string
  /** Other addresses of the same bot: what comes from them is its own mail. */
  aliases?: string[]
  /**
   * Receive from this mailbox; exclusive: one replica is connected, the others stand by. Without it mail comes
   * through `ingest()` or the webhook, on every replica.
   */
  imap?: MailServer & {
    /** Default `INBOX`. */
    mailbox?: string
  }
  /** Send through this server. */
  smtp: MailServer
  /** Without `imap`: take MIME mail by webhook, from whoever knows the secret (at least 16 characters). */
  webhook?: { secret: string }
  /** Subject of a mail that begins a thread; default: the name, else the address. */
  subject?: string
  /** How long the mailbox may be silent before it is asked; default 25 s, with `answerMs` always under a minute. */
  checkMs?: Duration
  /** How long the mailbox may take to answer before the connection counts as dead; default 10 s. */
  answerMs?: Duration
  /** How long one step of a send may take; default 30 s. */
  sendTimeoutMs?: Duration
  /** Unread mail that is older is left alone, such as that of before the bot; default one day. */
  maxAge?: Duration
  /** Largest mail that is read whole, in bytes; default 25 MiB. Of a larger one only the text comes. */
  maxMessageBytes?: number
  /** Largest file that is sent, in bytes; default 10 MiB. */
  maxAttachmentBytes?: number
  /** How many mails go to one thread in an hour, so that two machines do not write to each other; default 30. */
  maxRepliesPerThread?: number
  /**
   * What to do with a mail whose fate is unknown: leave it (`'skip'`, default) or send it again (`'resend'`). Both
   * copies have one Message-ID, so that many mailboxes show one.
   */
  uncertainSends?: 'skip' | 'resend'
}

export interface ServerSettings {
  host: string
  port: number
  security: 'tls' | 'starttls' | 'none'
  user: string
  password: string | null
  accessToken: (() => Promise<string>) | null
  ca: string[]
}

export interface EmailSettings {
  id: string
  address: string
  name: string | null
  /** All addresses of the bot, in lower case. */
  own: ReadonlySet<string>
  /** Marks Message-IDs as this bot's. */
  mark: OwnMark
  subject: string
  imap: (ServerSettings & { mailbox: string }) | null
  smtp: ServerSettings
  webhook: { secret: string } | null
  checkMs: number
  answerMs: number
  sendTimeoutMs: number
  maxAgeMs: number
  maxMessageBytes: number
  maxAttachmentBytes: number
  maxRepliesPerThread: number
  uncertainSends: 'skip' | 'resend'
  /** What no log and no error may show; tokens are added as they are asked for. */
  secrets: ReadonlySet<string>
}

const KNOWN = [
  'address',
  'name',
  'account',
  'aliases',
  'imap',
  'smtp',
  'webhook',
  'subject',
  'checkMs',
  'answerMs',
  'sendTimeoutMs',
  'maxAge',
  'maxMessageBytes',
  'maxAttachmentBytes',
  'maxRepliesPerThread',
  'uncertainSends',
] as const satisfies readonly (keyof EmailOptions)[]
const KNOWN_SERVER = ['host', 'port', 'security', 'user', 'password', 'accessToken', 'ca'] as const
const PORTS = { imap: { tls: 993, other: 143 }, smtp: { tls: 465, other: 587 } }
const NOTICED_MS = 60_000
const SECRET_CHARS = 16

/** @throws ConfigError that names the option; never with a secret's value. */
export function readOptions(options: EmailOptions): EmailSettings {
  return checkedFor('EmailProvider', () => read(options))
}

function read(options: EmailOptions): EmailSettings {
  refuseUnknownOptions('EmailProvider', options, KNOWN)
  const address = requireAddress('address', options.address)
  const secrets = new Set<string>()
  const imap = options.imap === undefined ? null : readImap(options.imap, address, secrets)
  const smtp = readServer('smtp', options.smtp, address, secrets)
  const webhook = readWebhook(options)
  if (webhook !== null) secrets.add(webhook.secret)
  const checkMs = parseDuration('checkMs', options.checkMs ?? '25s', { minMs: 50 })
  const answerMs = parseDuration('answerMs', options.answerMs ?? '10s', { minMs: 50 })
  if (checkMs + answerMs >= NOTICED_MS) {
    refuse(
      'checkMs',
      options.checkMs,
      'together with answerMs less than a minute: dead connections go unnoticed',
    )
  }
  const id = `email:${options.account === undefined ? address : requireText('account', options.account)}`
  const name = options.name === undefined ? null : requireLine('name', options.name)
  return {
    ...{ id, address, name, imap, smtp, webhook, checkMs, answerMs },
    own: new Set([address, ...(options.aliases ?? []).map((one) => requireAddress('aliases', one))]),
    mark: {
      tag: `bm${createHash('sha256').update(id).digest('hex').slice(0, 8)}`,
      domain: address.slice(address.lastIndexOf('@') + 1),
    },
    subject: options.subject === undefined ? (name ?? address) : requireLine('subject', options.subject),
    sendTimeoutMs: parseDuration('sendTimeoutMs', options.sendTimeoutMs ?? '30s', { minMs: 50 }),
    maxAgeMs: parseDuration('maxAge', options.maxAge ?? '1d', { minMs: 1000 }),
    maxMessageBytes: requireCount('maxMessageBytes', options.maxMessageBytes ?? 25 * 1024 * 1024, 4096),
    maxAttachmentBytes: requireCount('maxAttachmentBytes', options.maxAttachmentBytes ?? 10 * 1024 * 1024, 1),
    maxRepliesPerThread: requireCount('maxRepliesPerThread', options.maxRepliesPerThread ?? 30, 1),
    uncertainSends: requireOneOf('uncertainSends', options.uncertainSends ?? 'skip', ['skip', 'resend']),
    secrets,
  }
}

function readImap(
  imap: NonNullable<EmailOptions['imap']>,
  address: string,
  secrets: Set<string>,
): EmailSettings['imap'] {
  const { mailbox = 'INBOX', ...server } = imap
  const settings = readServer('imap', server, address, secrets)
  if (settings.password === null && settings.accessToken === null) {
    refuse('imap.password', imap.password, 'a password, or an accessToken (is the environment variable set?)')
  }
  return { ...settings, mailbox: requireText('imap.mailbox', mailbox) }
}

const serverForm = z.object({
  host: z.string('a host name').min(1, 'a host name (is the environment variable set?)'),
  port: z.int('a port').min(1, 'a port').max(65_535, 'a port').optional(),
  security: z.enum(['tls', 'starttls', 'none'], "'tls', 'starttls' or 'none'").default('tls'),
  user: z.string('a user name').min(1, 'a user name').optional(),
  password: z.string('a password').min(1, 'a password (is the environment variable set?)').optional(),
  ca: z.union([z.string(), z.array(z.string())], 'certificates as PEM text').default([]),
})

function readServer(
  option: 'imap' | 'smtp',
  server: MailServer,
  address: string,
  secrets: Set<string>,
): ServerSettings {
  if (typeof server !== 'object' || server === null) refuse(option, server, '{ host, password, … }')
  refuseUnknownOptions(
    `EmailProvider ${option}`,
    server,
    option === 'imap' ? [...KNOWN_SERVER, 'mailbox'] : KNOWN_SERVER,
  )
  const { accessToken, ...plain } = server
  const parsed = serverForm.safeParse(plain)
  if (!parsed.success) {
    const { path, message } = parsed.error.issues[0]!
    const name = String(path[0])
    const value = (plain as Record<string, unknown>)[name]
    refuse(`${option}.${name}`, name === 'password' ? hidden(value) : value, message)
  }
  const { host, port, security, user, password, ca } = parsed.data
  if (password !== undefined) secrets.add(password)
  const token = readToken(option, accessToken, secrets)
  if (token !== null && password !== undefined) {
    refuse(`${option}.accessToken`, '(hidden)', 'nothing where a password is given')
  }
  return {
    ...{ host, security },
    port: port ?? PORTS[option][security === 'tls' ? 'tls' : 'other'],
    user: user ?? address,
    password: password ?? null,
    accessToken: token,
    ca: typeof ca === 'string' ? [ca] : ca,
  }
}

function readToken(
  option: string,
  token: MailServer['accessToken'],
  secrets: Set<string>,
): ServerSettings['accessToken'] {
  if (token === undefined) return null
  if (typeof token !== 'function' && (typeof token !== 'string' || token === '')) {
    return refuse(`${option}.accessToken`, hidden(token), 'a token, or a function that returns one')
  }
  let last = ''
  return async () => {
    const fresh = typeof token === 'string' ? token : await token()
    // Those of an hour ago are of no use to anybody: only the last one is kept.
    secrets.delete(last)
    secrets.add(fresh)
    last = fresh
    return fresh
  }
}

function readWebhook({ webhook, imap }: EmailOptions): EmailSettings['webhook'] {
  if (webhook === undefined) return null
  if (imap !== undefined) refuse('webhook', '{ … }', 'nothing where imap is given: mail comes one way only')
  if (typeof webhook !== 'object' || webhook === null) refuse('webhook', webhook, '{ secret }')
  refuseUnknownOptions('EmailProvider webhook', webhook, ['secret'])
  if (typeof webhook.secret !== 'string' || webhook.secret.length < SECRET_CHARS) {
    refuse(
      'webhook.secret',
      hidden(webhook.secret),
      `at least ${SECRET_CHARS} characters (is the environment variable set?)`,
    )
  }
  return { secret: webhook.secret }
}

function requireAddress(option: string, value: unknown): string {
  const address = typeof value === 'string' ? readAddress(value) : null
  return address ?? refuse(option, value, 'an address such as shop@example.com')
}

function requireLine(option: string, value: unknown): string {
  const text = requireText(option, value)
  if (/[\r\n]/.test(text)) refuse(option, value, 'one line of text')
  return text
}

function requireCount(option: string, value: number, least: number): number {
  if (Number.isSafeInteger(value) && value >= least) return value
  return refuse(option, value, `a whole number, at least ${least}`)
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
