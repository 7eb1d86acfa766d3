/** Options of the Discord transport, checked at construction. */
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
import { GatewayIntentBits } from 'discord.js'

/** A slash command, as Discord's API takes it (`new SlashCommandBuilder()….toJSON()` of discord.js is one). */
export interface DiscordCommand {
  name: string
  description?: string
  [field: string]: unknown
}

export interface DiscordOptions {
  /** The bot's token: Developer Portal, your application, Bot. */
  token: string
  /** Name of the account in chat keys; default: the bot's user id. The same on every replica. */
  account?: string
  /**
   * Slash commands to register, by the leader, once a start; what is not listed is removed. Default: none is
   * registered and none removed.
   */
  commands?: readonly DiscordCommand[]
  /** Registers `commands` for this server only, where they appear at once: for development. Default: everywhere. */
  commandsGuild?: string
  /**
   * In servers: `'all'` messages of the channels that the bot sees (default), or `'mentions'`: only those that mention
   * the bot or answer one of its messages. Direct messages, commands and buttons always come.
   */
  listen?: 'all' | 'mentions'
  /**
   * Ask for the texts of messages that do not mention the bot (the privileged Message Content intent). Default true;
   * false needs `listen: 'mentions'`.
   */
  messageContent?: boolean
  /** Messages of other bots and of webhooks: `'ignore'` (default: two bots could answer each other for ever). */
  bots?: 'ignore' | 'deliver'
  /** A text over Discord's 2000 characters: `'split'` into several messages (default), or `'refuse'`. */
  longText?: 'split' | 'refuse'
  /** Largest file sent, in bytes. Default 10 MiB, which every server takes; boosted ones take 50 or 100 MiB. */
  maxFileBytes?: number
  /** How long one call that sends may take until its fate counts as unknown. Default 30 s. */
  sendTimeoutMs?: Duration
  /** Default `https://discord.com/api`; a proxy or a test server otherwise. */
  apiRoot?: string
}

export interface DiscordSettings {
  id: string
  token: string
  /** The bot's user id: Discord writes it into the token. */
  botId: string
  intents: number
  commands: readonly DiscordCommand[] | null
  commandsGuild: string | null
  listen: 'all' | 'mentions'
  bots: 'ignore' | 'deliver'
  longText: 'split' | 'refuse'
  maxFileBytes: number
  sendTimeoutMs: number
  apiRoot: string
}

const KNOWN = [
  'token',
  'account',
  'commands',
  'commandsGuild',
  'listen',
  'messageContent',
  'bots',
  'longText',
  'maxFileBytes',
  'sendTimeoutMs',
  'apiRoot',
] as const satisfies readonly (keyof DiscordOptions)[]

/** What every server takes; Discord's own limit for servers without boosts. */
const DEFAULT_FILE_BYTES = 10 * 1024 * 1024
const LARGEST_FILE_BYTES = 500 * 1024 * 1024

/** @throws ConfigError that names the option; never with the token. */
export function readOptions(options: DiscordOptions): DiscordSettings {
  return checkedFor('DiscordProvider', () => read(options))
}

function read(options: DiscordOptions): DiscordSettings {
  refuseUnknownOptions('DiscordProvider', options, KNOWN)
  const { token, botId } = readToken(options.token)
  const account = options.account === undefined ? botId : requireText('account', options.account)
  const listen = requireOneOf('listen', options.listen ?? 'all', ['all', 'mentions'])
  const { messageContent = true, maxFileBytes = DEFAULT_FILE_BYTES, commandsGuild, commands } = options
  if (typeof messageContent !== 'boolean') refuse('messageContent', messageContent, 'true or false')
  if (!messageContent && listen === 'all') {
    refuse('messageContent', false, "true with listen: 'all', as the other messages would come without text")
  }
  if (!Number.isSafeInteger(maxFileBytes) || maxFileBytes < 1 || maxFileBytes > LARGEST_FILE_BYTES) {
    refuse('maxFileBytes', maxFileBytes, `a whole number of bytes, 1 to ${LARGEST_FILE_BYTES}`)
  }
  if (commandsGuild !== undefined && !/^\d{15,21}$/.test(commandsGuild)) {
    refuse('commandsGuild', commandsGuild, "a server's id, such as '290926798999357250'")
  }
  if (commandsGuild !== undefined && commands === undefined) {
    refuse('commandsGuild', commandsGuild, 'nothing without `commands`')
  }
  return {
    id: `discord:${account}`,
    token,
    botId,
    intents:
      GatewayIntentBits.Guilds |
      GatewayIntentBits.GuildMessages |
      GatewayIntentBits.DirectMessages |
      (messageContent ? GatewayIntentBits.MessageContent : 0),
    commands: commands === undefined ? null : readCommands(commands),
    commandsGuild: commandsGuild ?? null,
    listen,
    bots: requireOneOf('bots', options.bots ?? 'ignore', ['ignore', 'deliver']),
    longText: requireOneOf('longText', options.longText ?? 'split', ['split', 'refuse']),
    maxFileBytes,
    sendTimeoutMs: parseDuration('sendTimeoutMs', options.sendTimeoutMs ?? '30s', { minMs: 100 }),
    apiRoot: readUrl('apiRoot', options.apiRoot ?? 'https://discord.com/api').replace(/\/+$/, ''),
  }
}

/** Its first part is the bot's user id in base64. */
function readToken(token: unknown): { token: string; botId: string } {
  if (typeof token === 'string' && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) {
    const botId = Buffer.from(token.slice(0, token.indexOf('.')), 'base64url').toString()
    if (/^\d{15,21}$/.test(botId)) return { token, botId }
  }
  return refuse(
    'token',
    typeof token === 'string' ? (token === '' ? '' : '(hidden)') : token,
    'the bot\'s token from the Developer Portal (your application, Bot), without "Bot " before it; is the environment variable set?',
  )
}

function readCommands(commands: unknown): readonly DiscordCommand[] {
  const accepted = 'a list of { name, description, … } with names of 1 to 32 small letters, digits, - and _'
  if (!Array.isArray(commands)) return refuse('commands', commands, accepted)
  const names = new Set<unknown>()
  for (const command of commands as (DiscordCommand | null)[]) {
    const { name, type = 1 }: Partial<DiscordCommand> = command ?? {}
    const fits =
      typeof name === 'string' && /^[-_'\p{L}\p{N}]{1,32}$/u.test(name) && name === name.toLowerCase()
    if (type === 1 && (!fits || names.has(name))) {
      refuse('commands', name, fits ? `${accepted}, each once` : accepted)
    }
    if (type === 1) names.add(name)
  }
  return commands as DiscordCommand[]
}

function readUrl(option: string, value: unknown): string {
  if (typeof value === 'string' && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol))
    return value
  return refuse(option, value, 'an http(s) URL')
}

function refuse(option: string, value: unknown, accepted: string): never {
  throw new ConfigError((what) => `${what} is ${describeValue(value)}; accepted: ${accepted}.`, {
    option,
    value,
    accepted,
  })
}
