/** What the shop reads from its environment; the launcher passes the same as an object. */
import { ConfigError, describeValue, parseDuration } from '@botmesh/core'
import type { MemoryStore } from '@botmesh/core'

/** What several replicas of one process share, where there is no Redis: data, and the hub that grants turns. */
export interface InProcessMesh {
  store: MemoryStore
}

export interface WhatsAppSettings {
  phoneNumberId: string
  accessToken: string
  appSecret: string
  verifyToken: string
  /** Another address of the Graph API, such as a double's. */
  graphUrl?: string
}

export interface TelegramSettings {
  token: string
  /** Absent: long polling, by the leader alone. */
  webhookSecret?: string
  /** Another address of the Bot API, such as a double's. */
  apiRoot?: string
}

/** WhatsApp as a device that is paired with a phone: one replica is connected, the others stand by. */
export interface WhatsAppWebSettings {
  session: string
  /** Where the session is kept; with several replicas a folder that all of them see. */
  folder?: string
  /** Pair by a code that is typed on this phone, instead of a QR code. */
  pairingPhone?: string
  /** Shows what pairs the bot on standard output too. Default true. */
  printQr?: boolean
  /** Another server than WhatsApp's, such as a double's. */
  waWebSocketUrl?: string
}

export interface ShopOptions {
  /** 0 (the default): a free one. */
  port?: number
  /** Default: all addresses. */
  host?: string
  replicaId?: string
  /** Shared by replicas in processes of their own. Absent: `mesh`. */
  redisUrl?: string
  /** Shared by replicas of this process. Absent, as `redisUrl`: one replica, on its own. */
  mesh?: InProcessMesh
  /** Default 5 s: a demo should not make one wait. */
  leaseMs?: number
  /** Record messages on arrival, so that none is lost with a replica (D1). */
  durability?: boolean
  prefix?: string
  /** Signs the web chat's visitors; the same on every replica. */
  webchatSecret?: string
  whatsapp?: WhatsAppSettings
  telegram?: TelegramSettings
  whatsappWeb?: WhatsAppWebSettings
  /**
   * Who knows it may see the pairing page, `/pairing`; without one there is no such page. 16 characters or more; only
   * with `whatsappWeb`.
   */
  pairingPassword?: string
  /** `ready`: standbys of an exclusive transport count as ready, as a rolling deploy needs it. Default `not-ready`. */
  healthStandby?: 'ready' | 'not-ready'
  /** Default `info`. */
  logLevel?: string
  /** Readable instead of JSON. Default: if standard output is a terminal. */
  prettyLogs?: boolean
}

const PASSWORD_LENGTH = 16

/**
 * Whoever sees the pairing page can pair a phone with the shop: no password that one could guess. One for a page that
 * does not exist is a mistake, as half of a transport's settings is.
 * @param password how whoever runs the shop calls the password; `transport`: what configures WhatsApp Web.
 * @throws ConfigError
 */
export function checkPairing(
  { pairingPassword, whatsappWeb }: { [K in 'pairingPassword' | 'whatsappWeb']?: ShopOptions[K] | undefined },
  password = 'pairingPassword',
  transport = 'whatsappWeb',
): void {
  if (pairingPassword === undefined) return
  if (pairingPassword.length < PASSWORD_LENGTH) {
    const accepted = `${PASSWORD_LENGTH} characters or more`
    throw new ConfigError(`${password} is too short; accepted: ${accepted}.`, { option: password, accepted })
  }
  if (whatsappWeb !== undefined) return
  throw new ConfigError(
    `${password} is given, but there is nothing to pair: ${transport} is missing. Configure WhatsApp Web, or leave ${password} out.`,
    { option: transport },
  )
}

type Env = Readonly<Record<string, string | undefined>>

/** @throws ConfigError that names the variable. */
export function settingsFrom(env: Env): ShopOptions {
  const whatsapp = group(env, 'WHATSAPP', {
    phoneNumberId: 'WHATSAPP_PHONE_NUMBER_ID',
    accessToken: 'WHATSAPP_ACCESS_TOKEN',
    appSecret: 'WHATSAPP_APP_SECRET',
    verifyToken: 'WHATSAPP_VERIFY_TOKEN',
  })
  const telegram = telegramFrom(env)
  const whatsappWeb = whatsappWebFrom(env)
  const pairingPassword = text(env, 'PAIRING_PASSWORD')
  checkPairing({ pairingPassword, whatsappWeb }, 'PAIRING_PASSWORD', 'WHATSAPP_WEB_SESSION')
  return {
    port: portOf(text(env, 'PORT') ?? '3000'),
    ...optional('host', text(env, 'HOST')),
    ...optional('replicaId', text(env, 'REPLICA_ID')),
    ...optional('redisUrl', text(env, 'REDIS_URL')),
    ...optional('leaseMs', duration(env, 'LEASE_MS')),
    ...optional('prefix', text(env, 'PREFIX')),
    ...optional('webchatSecret', text(env, 'WEBCHAT_SECRET')),
    ...optional('logLevel', text(env, 'LOG_LEVEL')),
    durability: text(env, 'DURABILITY') === '1',
    ...(whatsapp === undefined
      ? {}
      : { whatsapp: { ...whatsapp, ...optional('graphUrl', text(env, 'WHATSAPP_GRAPH_URL')) } }),
    ...optional('telegram', telegram),
    ...optional('whatsappWeb', whatsappWeb),
    ...optional('pairingPassword', pairingPassword),
    ...optional('healthStandby', standby(env)),
  }
}

function text(env: Env, name: string): string | undefined {
  const value = env[name]
  return value === undefined || value === '' ? undefined : value
}

function duration(env: Env, name: string): number | undefined {
  const value = text(env, name)
  if (value === undefined) return undefined
  return parseDuration(name, /^\d+$/.test(value) ? Number(value) : value, { minMs: 1000 })
}

function telegramFrom(env: Env): TelegramSettings | undefined {
  const telegram = group(env, 'TELEGRAM', { token: 'TELEGRAM_TOKEN' })
  const webhookSecret = text(env, 'TELEGRAM_WEBHOOK_SECRET')
  if (telegram === undefined) {
    if (webhookSecret === undefined) return undefined
    throw new ConfigError('TELEGRAM is only half configured: TELEGRAM_TOKEN is missing.', {
      option: 'TELEGRAM_TOKEN',
    })
  }
  return {
    ...telegram,
    ...optional('webhookSecret', webhookSecret),
    ...optional('apiRoot', text(env, 'TELEGRAM_API_ROOT')),
  }
}

function whatsappWebFrom(env: Env): WhatsAppWebSettings | undefined {
  const session = text(env, 'WHATSAPP_WEB_SESSION')
  if (session === undefined) return undefined
  return {
    session,
    ...optional('folder', text(env, 'WHATSAPP_WEB_FOLDER')),
    ...optional('pairingPhone', text(env, 'WHATSAPP_WEB_PHONE')),
    ...optional('waWebSocketUrl', text(env, 'WHATSAPP_WEB_URL')),
  }
}

function standby(env: Env): 'ready' | 'not-ready' | undefined {
  const value = text(env, 'HEALTH_STANDBY')
  if (value === undefined || value === 'ready' || value === 'not-ready') return value
  throw new ConfigError(`HEALTH_STANDBY is ${describeValue(value)}; accepted: ready, not-ready.`, {
    option: 'HEALTH_STANDBY',
    value,
  })
}

function portOf(value: string): number {
  const port = Number(value)
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw new ConfigError(`PORT is ${describeValue(value)}; accepted: a number from 0 to 65535.`, {
    option: 'PORT',
    value,
  })
}

/** All variables of a transport, or none of them. */
function group<K extends string>(
  env: Env,
  what: string,
  names: Record<K, string>,
): Record<K, string> | undefined {
  const entries = Object.entries<string>(names).map(([key, name]) => [key, text(env, name), name] as const)
  if (entries.every(([, value]) => value === undefined)) return undefined
  const missing = entries.filter(([, value]) => value === undefined).map(([, , name]) => name)
  if (missing.length > 0) {
    throw new ConfigError(`${what} is only half configured: ${missing.join(', ')} is missing.`, {
      option: missing[0] ?? what,
    })
  }
  return Object.fromEntries(entries.map(([key, value]) => [key, value])) as Record<K, string>
}

function optional<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: V }
}
