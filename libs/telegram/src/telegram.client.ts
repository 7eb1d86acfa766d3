/** The Bot API through grammY: all I/O of this package is here. */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { networkCodeOf, ProviderError, readBounded, SendError, type Clock } from '@botmesh/core'
import { Api, type ApiClientOptions } from 'grammy'
import { z } from 'zod'
import type { TelegramSettings } from './options.js'
import type { ApiCall } from './render-outbound.js'
import { toSendError } from './telegram-errors.js'

/** What the bot asks for. Reactions come only if asked for by name. */
export const ALLOWED_UPDATES = ['message', 'edited_message', 'callback_query', 'message_reaction'] as const

const sentSchema = z.object({ message_id: z.number(), chat: z.object({ id: z.number() }) })
const meSchema = z.object({ username: z.string() })
const fileSchema = z.object({ file_path: z.string() })

/** Idle connections end before the far side ends them, or the next send could meet a closing one. */
const IDLE_CONNECTION_MS = 8_000
/** What a long poll may take beyond its own time. */
const POLL_GRACE_S = 10
const DOWNLOAD_TIMEOUT_FACTOR = 4

type AnyMethod = (payload: object, signal?: AbortSignal) => Promise<unknown>

export class TelegramClient {
  private readonly polls: Api
  private readonly calls: Api

  constructor(private readonly settings: TelegramSettings) {
    const agentOptions = { keepAlive: true, timeout: IDLE_CONNECTION_MS }
    const agent = settings.apiRoot.startsWith('https:')
      ? new HttpsAgent(agentOptions)
      : new HttpAgent(agentOptions)
    const options = (timeoutSeconds: number): ApiClientOptions => ({
      apiRoot: settings.apiRoot,
      timeoutSeconds,
      // grammY on Node uses node-fetch, which takes an agent; the types are those of the global fetch.
      baseFetchConfig: { agent, compress: true } as ApiClientOptions['baseFetchConfig'] & object,
    })
    this.polls = new Api(settings.token, options(settings.pollTimeoutS + POLL_GRACE_S))
    this.calls = new Api(settings.token, options(settings.sendTimeoutMs / 1000))
  }

  /** The bot's name. @throws errors of grammY, ProviderError for an answer without it: see `judgeConnection`. */
  async username(signal: AbortSignal): Promise<string> {
    // The one method without parameters: grammY takes the signal of such where the others take the payload.
    const getMe = this.method(this.calls, 'getMe') as unknown as (signal: AbortSignal) => Promise<unknown>
    const parsed = meSchema.safeParse(await getMe(signal))
    if (parsed.success) return parsed.data.username
    const reason = 'the answer to getMe names no bot: check apiRoot'
    throw new ProviderError(`Telegram: ${reason}.`, { provider: this.settings.id, reason, final: false })
  }

  /**
   * One poll; asking from `offset` on also confirms all before it.
   * @param offset undefined: from the oldest that is not confirmed. @throws errors of grammY.
   */
  async updates(
    offset: number | undefined,
    options: { timeoutS: number; limit?: number },
    signal: AbortSignal,
  ): Promise<unknown[]> {
    const payload = {
      ...(offset === undefined ? {} : { offset }),
      limit: options.limit ?? 100,
      timeout: options.timeoutS,
      allowed_updates: ALLOWED_UPDATES,
    }
    const updates = await this.method(this.polls, 'getUpdates')(payload, signal)
    return Array.isArray(updates) ? updates : []
  }

  /** @throws errors of grammY. */
  async setWebhook(url: string, secret: string, signal: AbortSignal): Promise<void> {
    const payload = { url, secret_token: secret, allowed_updates: ALLOWED_UPDATES }
    await this.method(this.calls, 'setWebhook')(payload, signal)
  }

  /** Keeps the updates that wait. @throws errors of grammY. */
  async deleteWebhook(signal: AbortSignal): Promise<void> {
    await this.method(this.calls, 'deleteWebhook')({ drop_pending_updates: false }, signal)
  }

  /** Sends one message. @returns its id, `<chat>:<message>`. @throws SendError */
  async send(call: ApiCall): Promise<string> {
    const parsed = sentSchema.safeParse(await this.act(call))
    if (!parsed.success) {
      throw new SendError(`Telegram: the answer to ${call.method} names no message.`, {
        provider: this.settings.id,
        outcome: 'uncertain',
      })
    }
    return `${parsed.data.chat.id}:${parsed.data.message_id}`
  }

  /** Any other call that a user notices. @throws SendError */
  async act(call: ApiCall): Promise<unknown> {
    try {
      return await this.method(this.calls, call.method)(call.payload)
    } catch (error) {
      throw toSendError(this.settings.id, call.method, error, this.settings.token)
    }
  }

  /** Fetches a file that a user sent. @throws SendError `final` if it is larger than `maxBytes`. */
  async download(fileId: string, maxBytes: number, clock: Clock): Promise<Uint8Array> {
    const { id: provider } = this.settings
    const parsed = fileSchema.safeParse(await this.act({ method: 'getFile', payload: { file_id: fileId } }))
    const data = parsed.success ? await this.fetchFile(parsed.data.file_path, maxBytes, clock) : undefined
    if (data === undefined) {
      throw new SendError('Telegram: the answer about a file names no path.', {
        provider,
        outcome: 'retryable',
      })
    }
    if (data !== null) return data
    throw new SendError(`The file is larger than ${maxBytes} bytes: raise maxBytes to fetch it.`, {
      provider,
      outcome: 'final',
    })
  }

  private async fetchFile(path: string, maxBytes: number, clock: Clock): Promise<Uint8Array | null> {
    const { apiRoot, token, id: provider, sendTimeoutMs } = this.settings
    const deadline = new AbortController()
    const timer = clock.setTimeout(() => deadline.abort(), sendTimeoutMs * DOWNLOAD_TIMEOUT_FACTOR)
    try {
      const response = await fetch(`${apiRoot}/file/bot${token}/${path}`, { signal: deadline.signal })
      if (!response.ok) throw new Error(`HTTP ${response.status}`)
      return await readBounded(response, maxBytes)
    } catch (error) {
      const said = error instanceof Error ? error.message.replaceAll(token, '***') : 'failed'
      throw new SendError(`The file could not be fetched from Telegram (${networkCodeOf(error) ?? said}).`, {
        provider,
        outcome: 'retryable',
      })
    } finally {
      timer.cancel()
    }
  }

  /** grammY's methods by name: render decides which one, so the types of each cannot help here. */
  private method(api: Api, name: string): AnyMethod {
    return (api.raw as unknown as Record<string, AnyMethod>)[name]!
  }
}
