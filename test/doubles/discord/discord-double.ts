/**
 * A local double of Discord: its REST API (where to connect, messages, interactions and their answers, commands) with
 * scripted refusals, limits and lost answers, and its gateway. Nothing here knows of the transport under test.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpDouble } from '../http-double.js'
import { GatewayDouble } from './gateway.js'
import { fail, limit, readBody, refusal, reply, type Answer, type UploadedFile } from './http-answers.js'

/** A call, except of what only asks. */
export interface DiscordCall {
  /** Milliseconds of a monotonic clock. */
  at: number
  /** Such as `POST /channels/41/messages`; tokens of interactions stand in it. */
  route: string
  body: Record<string, unknown>
  /** Names and sizes of what was uploaded. */
  files: UploadedFile[]
}

export type DiscordFault =
  /** Refused, with Discord's own code. */
  | { kind: 'error'; status: number; code?: number; message?: string }
  | { kind: 'limit'; retryAfterMs: number; global?: boolean }
  /** Done, but the connection is cut before the answer. */
  | { kind: 'lost-answer' }
  /** Done, but never answered. */
  | { kind: 'silence' }

export interface DiscordDoubleOptions {
  token?: string
  heartbeatMs?: number
}

export const BOT_ID = '290926798999357250'
/** Its first part is the bot's id, as Discord's tokens have it. */
export const TOKEN = `${Buffer.from(BOT_ID).toString('base64url')}.Gdouble.AAsecretTokenOfTheTests_0123456789`
export const LUCIA = {
  id: '501001000000000001',
  username: 'lucia.ferrer',
  global_name: 'Lucía Ferrer',
  discriminator: '0',
  bot: false,
}
/** A direct chat with Lucía, and a channel of a server. */
export const DM = '601001000000000001'
export const CHANNEL = '602001000000000001'
export const GUILD = '603001000000000001'
const EPOCH_MS = 1_420_070_400_000

export class DiscordDouble extends HttpDouble {
  readonly token: string
  readonly gateway: GatewayDouble
  readonly calls: DiscordCall[] = []
  /** Every request, in order, as method and path. */
  readonly requests: string[] = []
  /** Slash commands as registered last. */
  commands: unknown[] = []
  /** True: nobody answers, neither calls nor connections. */
  away = false
  /** How many sessions may be begun today. */
  sessionsLeft = 1000
  /** Tokens of interactions that were acknowledged, with the kind of acknowledgement. */
  readonly acknowledged = new Map<string, number>()
  /** Interactions that do not wait any more. */
  readonly expired = new Set<string>()
  private readonly faults: { route: RegExp; fault: DiscordFault }[] = []
  private readonly nonces = new Map<string, object>()
  private serial = 0

  constructor(options: DiscordDoubleOptions = {}) {
    super()
    this.token = options.token ?? TOKEN
    this.gateway = new GatewayDouble({
      token: this.token,
      botId: BOT_ID,
      applicationId: BOT_ID,
      heartbeatMs: options.heartbeatMs ?? 41_250,
      url: () => this.gatewayUrl,
      wake: () => this.wake(),
    })
    this.server.on('upgrade', (request, socket, head) => {
      if (this.away) socket.destroy()
      else this.gateway.upgrade(request, socket, head)
    })
  }

  /** What clients are configured with. */
  get apiRoot(): string {
    return `${this.url}/api`
  }

  get gatewayUrl(): string {
    return this.url.replace('http', 'ws')
  }

  /** Messages that the bot wrote, in channels or as answers. */
  get sent(): DiscordCall[] {
    return this.calls.filter(({ route }) => /^POST .*\/messages$|^(PATCH|POST) \/webhooks\//.test(route))
  }

  override async close(): Promise<void> {
    this.gateway.stop()
    await super.close()
  }

  /** Scripts the next calls of routes that match, one fault each. */
  failNext(route: RegExp, ...faults: DiscordFault[]): void {
    this.faults.push(...faults.map((fault) => ({ route, fault })))
  }

  /** A new id, made now. */
  snowflake(): string {
    this.serial += 1
    return String((BigInt(Date.now() - EPOCH_MS) << 22n) + BigInt(this.serial))
  }

  /** Somebody writes. @returns the message's id. */
  say(text: string, more: Record<string, unknown> = {}): string {
    const id = this.snowflake()
    this.gateway.dispatch('MESSAGE_CREATE', {
      id,
      channel_id: DM,
      author: LUCIA,
      type: 0,
      content: text,
      timestamp: new Date().toISOString(),
      mentions: [],
      attachments: [],
      embeds: [],
      components: [],
      ...more,
    })
    return id
  }

  /** The same in the server's channel. */
  sayInGuild(text: string, more: Record<string, unknown> = {}): string {
    return this.say(text, {
      channel_id: CHANNEL,
      guild_id: GUILD,
      member: { nick: null, roles: [] },
      ...more,
    })
  }

  /** Somebody uses a slash command or presses a button. @returns the interaction's id and token. */
  interact(fields: Record<string, unknown>): { id: string; token: string } {
    const id = this.snowflake()
    const token = `aW50ZXJhY3Rpb246-${id}-secretInteractionToken`
    this.gateway.dispatch('INTERACTION_CREATE', {
      id,
      application_id: BOT_ID,
      type: 2,
      token,
      channel_id: DM,
      channel: { id: DM, type: 1 },
      user: LUCIA,
      locale: 'es-ES',
      version: 1,
      ...fields,
    })
    return { id, token }
  }

  protected async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.away) return void response.destroy()
    const method = request.method ?? 'GET'
    const path = new URL(request.url ?? '', this.url).pathname.replace(/^\/api(\/v\d+)?/, '')
    const route = `${method} ${path}`
    const { body, files } = await readBody(request)
    this.requests.push(route)
    const at = this.faults.findIndex((one) => one.route.test(route))
    const fault = at < 0 ? undefined : this.faults.splice(at, 1)[0]?.fault
    if (fault?.kind === 'error') {
      fail(response, fault.status, fault.code ?? 0, fault.message ?? 'scripted by the double')
    } else if (fault?.kind === 'limit') {
      limit(response, fault)
    } else {
      const result = this.perform(request, route, body, files)
      if (fault?.kind === 'lost-answer') response.destroy()
      else if (fault?.kind !== 'silence') reply(response, result)
    }
    this.wake()
  }

  private perform(request: IncomingMessage, route: string, body: unknown, files: UploadedFile[]): Answer {
    const [, callback] = /^POST \/interactions\/\d+\/([^/]+)\/callback$/.exec(route) ?? []
    if (callback !== undefined) return this.acknowledge(route, callback, body)
    const [, webhook] = /^(?:POST|PATCH) \/webhooks\/\d+\/([^/]+)/.exec(route) ?? []
    if (webhook !== undefined) {
      if (this.expired.has(webhook)) return refusal(404, 10015, 'Unknown Webhook')
      this.note(route, body, files)
      return { status: 200, json: this.messageOf(body) }
    }
    if (request.headers.authorization !== `Bot ${this.token}`) return refusal(401, 0, '401: Unauthorized')
    if (route === 'GET /gateway/bot') return { status: 200, json: this.whereTo() }
    if (route === 'GET /applications/@me') return { status: 200, json: { id: BOT_ID, name: 'Tienda' } }
    if (/^PUT \/applications\/\d+(\/guilds\/\d+)?\/commands$/.test(route)) {
      this.commands = body as unknown[]
      this.note(route, { commands: body }, files)
      return { status: 200, json: this.commands }
    }
    this.note(route, body, files)
    if (/^POST \/channels\/\d+\/messages$/.test(route)) return { status: 200, json: this.post(body) }
    if (/^PATCH \/channels\/\d+\/messages\/\d+$/.test(route))
      return { status: 200, json: this.messageOf(body) }
    if (/^POST \/channels\/\d+\/typing$/.test(route)) return { status: 204, json: null }
    if (route === 'POST /users/@me/channels') return { status: 200, json: { id: DM, type: 1 } }
    return refusal(404, 0, '404: Not Found')
  }

  private note(route: string, body: unknown, files: UploadedFile[]): void {
    this.calls.push({ at: performance.now(), route, body: (body ?? {}) as Record<string, unknown>, files })
  }

  private whereTo(): object {
    return {
      url: this.gatewayUrl,
      shards: 1,
      session_start_limit: {
        total: 1000,
        remaining: this.sessionsLeft,
        reset_after: 3_600_000,
        max_concurrency: 1,
      },
    }
  }

  private acknowledge(route: string, token: string, body: unknown): Answer {
    if (this.expired.has(token)) return refusal(404, 10062, 'Unknown interaction')
    if (this.acknowledged.has(token)) {
      return refusal(400, 40060, 'Interaction has already been acknowledged.')
    }
    this.acknowledged.set(token, (body as { type: number }).type)
    this.note(route, body, [])
    return { status: 204, json: null }
  }

  /** A nonce that was used before names the message that it made, if the client asks for that. */
  private post(body: unknown): object {
    const { nonce, enforce_nonce: enforce } = (body ?? {}) as { nonce?: string; enforce_nonce?: boolean }
    const before = enforce === true && nonce !== undefined ? this.nonces.get(nonce) : undefined
    if (before !== undefined) {
      this.calls.pop()
      return before
    }
    const message = this.messageOf(body)
    if (nonce !== undefined) this.nonces.set(nonce, message)
    // The bot gets its own messages too, like everybody in the channel.
    const author = { id: BOT_ID, username: 'tienda', bot: true }
    this.say((body as { content?: string } | undefined)?.content ?? '', { ...message, author })
    return message
  }

  private messageOf(body: unknown): object {
    const { content = '' } = (body ?? {}) as { content?: string }
    return { id: this.snowflake(), type: 0, channel_id: DM, content }
  }
}
