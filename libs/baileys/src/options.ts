/** Options of the WhatsApp Web transport, checked at construction. */
import { ConfigError, describeValue, parseDuration, refuseUnknownOptions, requireText } from '@botmesh/core'
import type { Duration } from '@botmesh/core'
import { DEFAULT_BACKLOG, type BacklogLimit } from './backlog.js'
import { FolderStorage } from './folder-storage.js'
import type { SessionStore } from './session-rows.js'
import type { SessionStorage } from './session-storage.js'
import { StoreStorage } from './store-storage.js'

export interface BaileysOptions {
  /** Names the account: `id` is `baileys:<session>`, the same on every replica. Letters, digits, `.`, `-`, `_`. */
  session: string
  /**
   * Where sessions are kept, one folder each; with several replicas a volume that all of them see. Default
   * `'./sessions'`. The layout is that of Baileys' own multi-file state: an existing folder is taken over.
   */
  folder?: string
  /**
   * Keeps the session in this store, usually the bot's own: no volume to share, and a former leader is refused (Z9).
   * With `folder` besides, a session that the store has never seen is taken over from there, once.
   */
  store?: SessionStore
  /** Keeps the session somewhere else than in `folder` or `store`. */
  storage?: SessionStorage
  /** Shows the QR code, or the code to type, on standard output, besides the pairing event. Default true. */
  printQr?: boolean
  /** Pair by a code to type on this phone (digits with country code) instead of a QR code. */
  pairingPhone?: string
  /** What to do with the session when WhatsApp says it is logged out: put it aside, so that the next start pairs
   * anew (default), or keep it. */
  afterLogout?: 'pair-again' | 'keep'
  /** Messages that waited for this device longer than this are ignored. Default `'24h'`. */
  offlineMaxAge?: Duration
  /** How long to wait for WhatsApp's acknowledgement of a send before its fate counts as unknown. Default `'20s'`. */
  ackTimeout?: Duration
  /**
   * How much may wait in this process behind a message that the bot refuses, before it disconnects until that one is
   * settled. Default 1000 messages, 8 MiB.
   */
  backlog?: { messages?: number; bytes?: number }
  /** Another server than WhatsApp's: tests, a proxy. */
  waWebSocketUrl?: string
  /** Passed to Baileys as they are and over what is set here (`version`, `browser`, `agent`, …); not `auth`. */
  socketOptions?: Record<string, unknown>
  /**
   * A pino logger for what Baileys itself says. Default: nothing, because below `warn` it writes keys and whole
   * messages. What this transport says goes to the bot's logger.
   */
  logger?: BaileysLogger
}

/** What Baileys logs through: pino fits. */
export interface BaileysLogger {
  level: string
  child(details: Record<string, unknown>): BaileysLogger
  trace(details: unknown, message?: string): void
  debug(details: unknown, message?: string): void
  info(details: unknown, message?: string): void
  warn(details: unknown, message?: string): void
  error(details: unknown, message?: string): void
}

export interface CheckedOptions {
  session: string
  storage: SessionStorage
  printQr: boolean
  pairingPhone: string | undefined
  afterLogout: 'pair-again' | 'keep'
  offlineMaxAgeMs: number
  ackTimeoutMs: number
  backlog: BacklogLimit
  waWebSocketUrl: string | undefined
  socketOptions: Record<string, unknown>
  logger: BaileysLogger
}

const KNOWN = [
  'session',
  'folder',
  'store',
  'storage',
  'printQr',
  'pairingPhone',
  'afterLogout',
  'offlineMaxAge',
  'ackTimeout',
  'backlog',
  'waWebSocketUrl',
  'socketOptions',
  'logger',
] as const

/** @throws ConfigError that names the option, the value given and what is accepted. */
export function checkOptions(options: BaileysOptions): CheckedOptions {
  refuseUnknownOptions('BaileysProvider', options, KNOWN)
  const session = checkSession(options.session)
  const { afterLogout = 'pair-again', pairingPhone, waWebSocketUrl, socketOptions = {} } = options
  if (afterLogout !== 'pair-again' && afterLogout !== 'keep') {
    throw wrong('afterLogout', afterLogout, "'pair-again', 'keep'")
  }
  if (pairingPhone !== undefined && !/^\d{7,15}$/.test(pairingPhone)) {
    throw wrong('pairingPhone', pairingPhone, "digits with the country code, such as '5215550001111'")
  }
  if (waWebSocketUrl !== undefined && !/^wss?:\/\//.test(waWebSocketUrl)) {
    throw wrong('waWebSocketUrl', waWebSocketUrl, 'a ws:// or wss:// address')
  }
  if ('auth' in socketOptions) {
    throw wrong('socketOptions.auth', 'given', 'nothing: the session is kept by `folder` or `storage`')
  }
  return {
    session,
    storage: storageOf(options),
    printQr: options.printQr ?? true,
    pairingPhone,
    afterLogout,
    offlineMaxAgeMs: parseDuration('offlineMaxAge', options.offlineMaxAge ?? '24h'),
    ackTimeoutMs: parseDuration('ackTimeout', options.ackTimeout ?? '20s', { minMs: 10 }),
    backlog: checkBacklog(options.backlog),
    waWebSocketUrl,
    socketOptions,
    logger: options.logger ?? SILENT,
  }
}

function storageOf({ storage, store, folder }: BaileysOptions): SessionStorage {
  if (storage !== undefined) {
    if (store !== undefined) throw wrong('store', 'given', 'nothing beside `storage`')
    return storage
  }
  const path = folder === undefined ? undefined : requireText('folder', folder)
  if (store === undefined) return new FolderStorage(path ?? './sessions')
  if (typeof (store as Partial<SessionStore> | null)?.getCheckpoint !== 'function') {
    throw wrong('store', 'no store', 'the store of the bot, such as `new RedisStore({ url })`')
  }
  return new StoreStorage(store, path === undefined ? {} : { importFrom: path })
}

function checkBacklog(given: BaileysOptions['backlog'] = {}): BacklogLimit {
  refuseUnknownOptions('BaileysProvider.backlog', given, ['messages', 'bytes'])
  const limit = { ...DEFAULT_BACKLOG, ...given }
  for (const [name, value] of Object.entries(limit)) {
    if (!Number.isSafeInteger(value) || value < 1)
      throw wrong(`backlog.${name}`, value, 'a whole number from 1')
  }
  return limit
}

function checkSession(value: unknown): string {
  const accepted = "a name of letters, digits, '.', '-' and '_', such as 'tienda'"
  const session = requireText('session', value, accepted)
  // It becomes the name of a folder.
  if (!/^[\w.-]+$/.test(session) || /^\.+$/.test(session)) throw wrong('session', session, accepted)
  return session
}

function wrong(option: string, value: unknown, accepted: string): ConfigError {
  return new ConfigError(`Option "${option}" is ${describeValue(value)}; accepted: ${accepted}.`, {
    option,
    value,
    accepted,
  })
}

const SILENT: BaileysLogger = {
  level: 'silent',
  child: () => SILENT,
  trace: () => {},
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
}
