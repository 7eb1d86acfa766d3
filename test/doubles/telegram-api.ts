/**
 * A local double of the Telegram Bot API: long polls with confirmation by offset and 409 to the *older* poller,
 * webhook delivery with the secret header, sends with a log and scripted errors, files. Plain node:http, no
 * dependency: tests and the demo run it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { formOf } from './form.js'
import { HttpDouble, readAll, replyJson, textOf } from './http-double.js'

export interface TelegramUpdate {
  update_id: number
  [kind: string]: unknown
}

/** A call other than polls and set-up. */
export interface TelegramCall {
  /** Milliseconds of a monotonic clock. */
  at: number
  method: string
  payload: Record<string, unknown>
  /** Of a call with files: their names, and how long they are. */
  files?: { name: string; bytes: number }[]
}

export type TelegramFault =
  | {
      kind: 'error'
      code: number
      description?: string
      parameters?: { retry_after?: number; migrate_to_chat_id?: number }
    }
  /** Taken, but the connection is cut before the answer. */
  | { kind: 'lost-answer' }
  /** Taken, but never answered. */
  | { kind: 'silence' }
  | { kind: 'text'; status: number; text: string }

export interface TelegramDoubleOptions {
  token?: string
  username?: string
  /** A poll waits at most this long, whatever it asks for: keeps tests short. Default 50 s. */
  longestPollMs?: number
}

interface OpenPoll {
  response: ServerResponse
  offset: number | undefined
  limit: number
  /** Wakes it: an update, its time, or a newer poll. */
  finish: () => void
}

const WEBHOOK_ACTIVE = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook"

export class TelegramApiDouble extends HttpDouble {
  readonly token: string
  readonly username: string
  readonly calls: TelegramCall[] = []
  /** Every method called, in order; polls included. */
  readonly methods: string[] = []
  readonly files = new Map<string, Uint8Array>()
  /** How many polls were put off by a newer one. */
  conflicts = 0
  /** The most polls that were open at one moment, counted before the older one is put off. */
  mostPolls = 0
  /** Polls that were begun. */
  polls = 0
  webhook: { url: string; secret: string } | null = null
  /** What the webhook's owner answered, in order. */
  readonly webhookAnswers: number[] = []

  private readonly waiting: TelegramUpdate[] = []
  private readonly faults = new Map<string, TelegramFault[]>()
  private readonly closing = new AbortController()
  private open: OpenPoll | undefined
  private openCount = 0
  private delivering = false
  private nextUpdateId = 700_000_000
  private nextMessageId = 1

  constructor(private readonly options: TelegramDoubleOptions = {}) {
    super()
    this.token = options.token ?? '123456789:AAdoubleTokenOfTheTests'
    this.username = options.username ?? 'tienda_bot'
  }

  /** Polls open now. */
  get openPolls(): number {
    return this.openCount
  }

  /** Updates that nobody has confirmed. */
  get unconfirmed(): number {
    return this.waiting.length
  }

  /** Messages that the bot sent. */
  get sent(): TelegramCall[] {
    return this.calls.filter((call) => call.method.startsWith('send') && call.method !== 'sendChatAction')
  }

  override async close(): Promise<void> {
    this.closing.abort()
    await super.close()
  }

  /** Scripts the next calls of a method, one fault each. */
  failNext(method: string, ...faults: TelegramFault[]): void {
    this.faults.set(method, [...(this.faults.get(method) ?? []), ...faults])
  }

  /** Adds an update, as a user's action does. @returns its number. */
  push(fields: Record<string, unknown>): number {
    const update = { update_id: this.nextUpdateId++, ...fields }
    this.waiting.push(update)
    this.open?.finish()
    void this.deliverByWebhook()
    return update.update_id
  }

  /** A private text message. @param chat the user's number, which is the chat's too. */
  say(chat: number, text: string, more: object = {}): number {
    const command = /^\/\w+(?:@\w+)?/.exec(text)
    return this.push({
      message: {
        message_id: this.nextMessageId++,
        date: 1_767_225_600,
        chat: { id: chat, type: 'private', first_name: 'Lucía' },
        from: { id: chat, is_bot: false, first_name: 'Lucía', last_name: 'Ferrer', language_code: 'es' },
        text,
        ...(command === null
          ? {}
          : { entities: [{ type: 'bot_command', offset: 0, length: command[0].length }] }),
        ...more,
      },
    })
  }

  protected async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const raw = await readAll(request)
    const [, file] = /^\/file\/bot[^/]+\/(.+)$/.exec(request.url ?? '') ?? []
    if (file !== undefined) return this.sendFile(file, response)
    const [, token, method = ''] = /^\/bot([^/]+)\/(\w+)/.exec(request.url ?? '') ?? []
    if (token !== this.token) return fail(response, 401, 'Unauthorized')
    const isForm = request.headers['content-type']?.startsWith('multipart/') === true
    const { payload, files } = isForm
      ? formOf(request, raw)
      : { payload: raw.length === 0 ? {} : (JSON.parse(raw.toString()) as Record<string, unknown>) }
    this.methods.push(method)
    const fault = this.faults.get(method)?.shift()
    if (fault?.kind === 'error') {
      fail(response, fault.code, fault.description ?? 'scripted by the double', fault.parameters)
    } else if (fault?.kind === 'text') {
      response.writeHead(fault.status, { 'content-type': 'text/html' }).end(fault.text)
    } else if (method === 'getUpdates') {
      await this.poll(payload, response)
    } else {
      const result = this.perform(method, payload, files)
      if (fault?.kind === 'lost-answer') response.destroy()
      else if (fault?.kind !== 'silence') {
        if (result === undefined) fail(response, 404, 'Not Found: method not found')
        else succeed(response, result)
      }
    }
    this.wake()
  }

  private perform(method: string, payload: Record<string, unknown>, files: TelegramCall['files']): unknown {
    switch (method) {
      case 'getMe':
        return {
          id: Number(this.token.split(':')[0]),
          is_bot: true,
          first_name: 'Tienda',
          username: this.username,
        }
      case 'deleteWebhook':
        this.webhook = null
        return true
      case 'setWebhook':
        this.webhook = { url: textOf(payload['url']), secret: textOf(payload['secret_token']) }
        void this.deliverByWebhook()
        return true
      case 'getFile':
        return { file_id: payload['file_id'], file_path: `documents/${String(payload['file_id'])}` }
    }
    if (!/^(send|edit|answer)/.test(method)) return undefined
    this.calls.push({
      at: performance.now(),
      method,
      payload,
      ...(files === undefined ? {} : { files }),
    })
    if (!/^(send|edit)/.test(method) || method === 'sendChatAction') return true
    const chat = Number(payload['chat_id'] ?? 0)
    return {
      message_id: this.nextMessageId++,
      date: 1_767_225_600,
      chat: { id: chat, type: 'private' },
      text: payload['text'],
    }
  }

  private async poll(payload: Record<string, unknown>, response: ServerResponse): Promise<void> {
    if (this.webhook !== null) return fail(response, 409, WEBHOOK_ACTIVE)
    // An older poll whose caller has gone before is not open any more: let its end be noticed before counting.
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
    const offset = payload['offset'] as number | undefined
    // So may this one's: its end has been told already, and would not be told again.
    if (response.closed) return this.confirm(offset)
    const timeoutMs = Math.min(Number(payload['timeout'] ?? 0) * 1000, this.options.longestPollMs ?? 50_000)
    this.polls++
    this.openCount++
    this.mostPolls = Math.max(this.mostPolls, this.openCount)
    const older = this.open
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      const poll: OpenPoll = { response, offset, limit: Number(payload['limit'] ?? 100), finish: resolve }
      response.on('close', resolve)
      this.open = poll
      if (older !== undefined) {
        this.conflicts++
        fail(
          older.response,
          409,
          'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running',
        )
        older.finish()
      }
      this.confirm(offset)
      if (this.waiting.length > 0 || timeoutMs === 0) return resolve()
      this.wake()
      timer = setTimeout(resolve, timeoutMs)
    })
    clearTimeout(timer)
    const superseded = response.writableEnded
    this.openCount--
    if (this.open?.response === response) this.open = undefined
    this.wake()
    if (superseded || response.destroyed) return
    succeed(response, this.waiting.slice(0, Number(payload['limit'] ?? 100)))
  }

  private confirm(offset: number | undefined): void {
    while (offset !== undefined && this.waiting.length > 0 && this.waiting[0]!.update_id < offset) {
      this.waiting.shift()
    }
  }

  /** One after the other; what is not answered with 2xx comes again after a pause. */
  private async deliverByWebhook(): Promise<void> {
    if (this.delivering) return
    this.delivering = true
    try {
      while (this.webhook !== null && this.waiting.length > 0 && !this.closing.signal.aborted) {
        const status = await this.post(this.webhook, this.waiting[0]!)
        this.webhookAnswers.push(status)
        if (status >= 200 && status < 300) this.waiting.shift()
        this.wake()
        if (status < 200 || status >= 300) await new Promise((resolve) => setTimeout(resolve, 50))
      }
    } finally {
      this.delivering = false
    }
  }

  private async post(webhook: { url: string; secret: string }, update: TelegramUpdate): Promise<number> {
    try {
      const response = await fetch(webhook.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-telegram-bot-api-secret-token': webhook.secret },
        body: JSON.stringify(update),
        signal: this.closing.signal,
      })
      await response.arrayBuffer()
      return response.status
    } catch {
      return 0
    }
  }

  private sendFile(path: string, response: ServerResponse): void {
    const data = this.files.get(path.replace(/^documents\//, ''))
    if (data === undefined) return void response.writeHead(404).end()
    response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(data)
  }
}

function succeed(response: ServerResponse, result: unknown): void {
  replyJson(response, 200, { ok: true, result })
}

function fail(response: ServerResponse, code: number, description: string, parameters?: object): void {
  replyJson(response, code, {
    ok: false,
    error_code: code,
    description,
    ...(parameters === undefined ? {} : { parameters }),
  })
}
