/**
 * A small bot as a process of its own, for tests that kill, freeze, block and drain it. Messages come in over its
 * standard input (or by Telegram's long polling, if TELEGRAM_ROOT is set, or Discord's gateway, if DISCORD_ROOT is,
 * or a mailbox, if MAIL is, or WhatsApp Web, if WHATSAPP_URL is); what happens goes out as events, a send as `sent`. What it does with a message stands in
 * the message: see `handlers`.
 */
import { Redis } from 'ioredis'
import { Bot, type BotConfig, type Logger, type Message, type Provider, type Store } from '@botmesh/core'
import { FakeProvider } from '@botmesh/core/testing'
import type { EmailOptions } from '@botmesh/email'
import { RedisStore, type RedisOptions } from '@botmesh/redis-store'
import { onCommand, tell } from '../../support/replica-side.js'
import { addHandlers, blockLoop } from './bot-handlers.js'
import { hammer } from './hammer.js'

const env = (name: string): string | undefined => process.env[name]
const replicaId = env('REPLICA_ID') ?? 'unnamed'
const report = (event: string, fields: object = {}): void => tell(event, { at: Date.now(), ...fields })

const log =
  (level: string) =>
  (details: object, text: string): void => {
    const { err } = details as { err?: unknown }
    report('log', { level, text, ...(err instanceof Error ? { error: `${err.name}: ${err.message}` } : {}) })
  }
const logger: Logger = { debug: () => undefined, info: log('info'), warn: log('warn'), error: log('error') }

const place = env('REDIS_PLACE')
const where = place === undefined ? { url: env('REDIS_URL') } : (JSON.parse(place) as RedisOptions)
const store = new RedisStore({ ...where, prefix: env('PREFIX') ?? 'e2e' })
const coordinator = store.coordinator({
  leaseMs: Number(env('LEASE_MS') ?? 2000),
  replicaId,
  maxPollMs: Number(env('MAX_POLL_MS') ?? 100),
  logger,
})
/** Where the data is: beside the turns unless DATA_URL names a database. */
const data = (await dataIn(env('DATA_URL'))) ?? store
const fake = new FakeProvider({ id: 'line:e2e' })
fake.platform.onSend(({ to, text }) => report('sent', { chat: to.chatId, text }))
const bot = new Bot(config(await provider()))
addHandlers(bot, replicaId, report)
listen()
onCommand(
  (command) => void obey(command).catch((error: unknown) => report('failed', { error: String(error) })),
)
process.once('SIGTERM', () => void end())
if (env('GATED') === undefined) await start()
else report('waiting')

/** Stores and transports are loaded only where they are used: a replica starts in half the time without them. */
async function dataIn(url: string | undefined): Promise<Store | undefined> {
  if (url === undefined) return undefined
  const options = { url, prefix: (env('PREFIX') ?? 'e2e').replaceAll('-', '_'), logger }
  if (url.startsWith('postgres')) return new (await import('@botmesh/postgres-store')).PostgresStore(options)
  if (url.startsWith('mysql')) return new (await import('@botmesh/mysql-store')).MySQLStore(options)
  return new (await import('@botmesh/sqlite-store')).SQLiteStore(options)
}

async function provider(): Promise<Provider> {
  const discordRoot = env('DISCORD_ROOT')
  if (discordRoot !== undefined) {
    const { DiscordProvider } = await import('@botmesh/discord')
    return new DiscordProvider({ token: env('DISCORD_TOKEN') ?? '', account: 'e2e', apiRoot: discordRoot })
  }
  const waWebSocketUrl = env('WHATSAPP_URL')
  if (waWebSocketUrl !== undefined) {
    await import('../../doubles/whatsapp-web/trust-double.mjs')
    const { BaileysProvider } = await import('@botmesh/baileys')
    return new BaileysProvider({
      session: 'e2e',
      store: data,
      printQr: false,
      waWebSocketUrl,
      socketOptions: { shouldSyncHistoryMessage: () => false },
    })
  }
  const mail = env('MAIL')
  if (mail !== undefined) {
    const { EmailProvider } = await import('@botmesh/email')
    return new EmailProvider(JSON.parse(mail) as EmailOptions)
  }
  const apiRoot = env('TELEGRAM_ROOT')
  if (apiRoot === undefined) return fake
  const { TelegramProvider } = await import('@botmesh/telegram')
  return new TelegramProvider({
    token: env('TELEGRAM_TOKEN') ?? '',
    account: 'e2e',
    apiRoot,
    pollTimeoutMs: '2s',
  })
}

function config(transport: Provider): BotConfig {
  const duration = (name: string, option: string) =>
    env(name) === undefined ? {} : { [option]: Number(env(name)) }
  return {
    provider: transport,
    store: data,
    logger,
    coordination: {
      coordinator,
      ...duration('TURN_WAIT_MS', 'turnWaitMs'),
      ...duration('SETTLE_MS', 'settleMs'),
      ...duration('PROVIDER_DOWN_MS', 'providerDownMs'),
    },
    ...(env('DURABILITY') === '1' ? { durability: { retryMs: 200 } } : {}),
    ...duration('DRAIN_MS', 'drainMs'),
  }
}

function listen(): void {
  bot.on('message:handled', ({ message, key, fence, previousHolder, seq }) =>
    report('handled', { id: message.id, key, body: message.body, fence, previousHolder, seq }),
  )
  bot.on('coordination:handover', ({ bot: _, ...event }) => report('handover', event))
  bot.on('coordination:lease-lost', ({ key, reason }) => report('lease-lost', { key, reason }))
  bot.on('coordination:leader', ({ name, fence }) => report('leader', { name, fence }))
  bot.on('coordination:follower', ({ name, reason }) => report('follower', { name, reason }))
  bot.on('error', ({ error }) => {
    const { code, details } = error as { code?: string; details?: object }
    report('error', { error: String(error), code, details })
  })
}

async function start(): Promise<void> {
  const lead = env('LEAD')
  if (lead !== undefined) {
    coordinator.elections.campaign(lead, {
      onLead: ({ name, fence }) => report('leader', { name, fence }),
      onFollow: (reason) => report('follower', { name: lead, reason }),
    })
  }
  // Scenario 21: twice is once.
  await Promise.all([bot.start(), bot.start()])
  report('started', { incarnation: coordinator.incarnation })
}

async function obey(command: Record<string, unknown>): Promise<void> {
  switch (command['do']) {
    case 'start':
      return start()
    case 'receive':
      return receive(command['message'] as Partial<Message>)
    case 'block':
      return blockLoop(Number(command['ms']))
    case 'hammer':
      return hammerOn(String(command['key']), Number(command['turns']))
    case 'status':
      return report('status', {
        incarnation: coordinator.incarnation,
        status: coordinator.status.status,
        ready: bot.health().ready,
        inFlight: bot.health().inFlight,
        resources: process.getActiveResourcesInfo().length,
      })
  }
}

async function receive(message: Partial<Message>): Promise<void> {
  try {
    await fake.receive(message)
    report('accepted', { id: message.id })
    report('answered', { id: message.id, accepted: true })
  } catch (error) {
    report('answered', { id: message.id, accepted: false })
    report('refused', { id: message.id, error: String(error), code: (error as { code?: string }).code })
  }
}

async function hammerOn(key: string, turns: number): Promise<void> {
  const witness = new Redis(env('REDIS_URL') ?? '')
  report('hammered', await hammer(coordinator, witness, key, turns))
  witness.disconnect()
}

/** As a deploy does. No process.exit: what ends this process is that nothing is left open. */
async function end(): Promise<void> {
  report('stopping')
  await bot.stop()
  await coordinator.stop()
  report('stopped')
  process.stdin.unref()
}
