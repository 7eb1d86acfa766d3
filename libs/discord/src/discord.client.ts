/**
 * Discord's REST API through discord.js: all HTTP of this package is here. discord.js keeps to the limits of each
 * route; waits of a few seconds for a route's own turn are made there, in order, longer ones are told to the caller.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { networkCodeOf, readBounded, SendError, type Clock } from '@botmesh/core'
import { DefaultRestOptions, RequestMethod, REST, Routes, type RESTOptions } from 'discord.js'
import { z } from 'zod'
import { toSendError } from './discord-errors.js'
import type { DiscordSettings } from './options.js'
import type { RenderedMessage } from './render-outbound.js'

const gatewaySchema = z.object({
  url: z.string(),
  session_start_limit: z
    .object({ remaining: z.number(), reset_after: z.number() })
    .catch({ remaining: 1, reset_after: 0 }),
})
const sentSchema = z.object({ id: z.string() })

export interface GatewayInfo {
  url: string
  /** How many sessions may still be begun before `resetAfterMs` has passed. */
  remaining: number
  resetAfterMs: number
}

/** A route gives five messages in five seconds: a wait for that is part of an ordinary send. */
const LONGEST_WAIT_MS = 5_500
const DOWNLOAD_TIMEOUT_FACTOR = 4

/** One call: the request of discord.js that is made for it is told here. */
interface Call {
  signal: AbortSignal | undefined
  started: boolean
}

export interface CallOptions {
  signal?: AbortSignal
  /** A repeat would be recognised by Discord. */
  repeatable?: boolean
}

type Path = `/${string}`
const METHODS = {
  GET: RequestMethod.Get,
  POST: RequestMethod.Post,
  PATCH: RequestMethod.Patch,
  PUT: RequestMethod.Put,
}

export class DiscordClient {
  private readonly rest: REST
  private readonly calls = new AsyncLocalStorage<Call>()

  constructor(private readonly settings: DiscordSettings) {
    this.rest = new REST({
      api: settings.apiRoot,
      version: '10',
      retries: 0,
      timeout: settings.sendTimeoutMs,
      offset: 0,
      rejectOnRateLimit: ({ retryAfter, global }) => global || retryAfter > LONGEST_WAIT_MS,
      // Not by `setToken`: discord.js forgets a token that was refused once.
      headers: { authorization: `Bot ${settings.token}` },
      makeRequest: (url, init) => this.request(url, init),
    })
  }

  /** Where to connect. @throws errors of discord.js: see `judgeConnection`. */
  async gateway(signal: AbortSignal): Promise<GatewayInfo> {
    const { url, session_start_limit: limit } = gatewaySchema.parse(
      await this.rest.get(Routes.gatewayBot(), { auth: false, signal }),
    )
    if (!URL.canParse(url) || !/^wss?:$/.test(new URL(url).protocol)) {
      throw new Error('Discord named no gateway')
    }
    return { url, remaining: limit.remaining, resetAfterMs: limit.reset_after }
  }

  /** Replaces the bot's slash commands. @throws SendError */
  async registerCommands(commands: readonly object[], guild: string | null): Promise<void> {
    const application = sentSchema.safeParse(
      await this.act('the application', 'GET', Routes.currentApplication()),
    )
    const id = application.data?.id ?? this.settings.botId
    const path = guild === null ? Routes.applicationCommands(id) : Routes.applicationGuildCommands(id, guild)
    await this.act('the commands', 'PUT', path, { body: commands })
  }

  /** Posts a message or changes one. @returns its id. @throws SendError */
  async write(
    method: 'POST' | 'PATCH',
    path: Path,
    message: RenderedMessage,
    options: CallOptions = {},
  ): Promise<string> {
    const answer = await this.act('the message', method, path, message, options)
    const parsed = sentSchema.safeParse(answer)
    if (parsed.success) return parsed.data.id
    throw new SendError('Discord: the answer names no message.', {
      provider: this.settings.id,
      outcome: 'uncertain',
    })
  }

  /** Any call. @param what names it in errors. @throws SendError, and the reason of `options.signal`. */
  async act(
    what: string,
    method: keyof typeof METHODS,
    path: Path,
    payload: { body?: unknown; files?: RenderedMessage['files'] } = {},
    options: CallOptions = {},
  ): Promise<unknown> {
    const call: Call = { signal: options.signal, started: false }
    const { body, files = [] } = payload
    try {
      return await this.calls.run(call, () =>
        this.rest.request({
          method: METHODS[method],
          fullRoute: path,
          auth: false,
          ...(body === undefined ? {} : { body }),
          ...(files.length === 0 ? {} : { files }),
        }),
      )
    } catch (error) {
      if (!call.started) options.signal?.throwIfAborted()
      throw toSendError(what, error, {
        provider: this.settings.id,
        token: this.settings.token,
        started: call.started,
        repeatable: options.repeatable ?? false,
      })
    }
  }

  /** Fetches an attachment. @throws SendError `final` if it is larger than `maxBytes`. */
  async download(url: string, maxBytes: number, clock: Clock): Promise<Uint8Array> {
    const { id: provider, sendTimeoutMs } = this.settings
    const deadline = new AbortController()
    const timer = clock.setTimeout(() => deadline.abort(), sendTimeoutMs * DOWNLOAD_TIMEOUT_FACTOR)
    try {
      const response = await fetch(url, { signal: deadline.signal })
      if (!response.ok) {
        const gone = response.status === 403 || response.status === 404
        throw new SendError(
          `The attachment could not be fetched from Discord (${response.status})${gone ? ': its link has expired' : ''}.`,
          { provider, outcome: gone ? 'final' : 'retryable', platformCode: String(response.status) },
        )
      }
      const data = await readBounded(response, maxBytes)
      if (data !== null) return data
    } catch (error) {
      if (error instanceof SendError) throw error
      throw new SendError(
        `The attachment could not be fetched from Discord (${networkCodeOf(error) ?? 'no code'}).`,
        { provider, outcome: 'retryable' },
        error,
      )
    } finally {
      timer.cancel()
      deadline.abort()
    }
    throw new SendError(`The attachment is larger than ${maxBytes} bytes: raise maxBytes to fetch it.`, {
      provider,
      outcome: 'final',
    })
  }

  /** Right before a request is written: nothing is begun for a turn that was lost while it waited its turn (L2). */
  private request(
    url: Parameters<RESTOptions['makeRequest']>[0],
    init: Parameters<RESTOptions['makeRequest']>[1],
  ): ReturnType<RESTOptions['makeRequest']> {
    const call = this.calls.getStore()
    call?.signal?.throwIfAborted()
    if (call !== undefined) call.started = true
    return DefaultRestOptions.makeRequest(url, init)
  }
}
