/**
 * A local double of Meta's Graph API as WhatsApp's Cloud API, Messenger and Instagram use it: takes messages, uploads
 * and media look-ups, keeps a log of what was sent, answers with scripted errors, and signs webhook bodies as Meta
 * does. Plain node:http, no dependency: tests and the demo run it.
 */
import { createHmac } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpDouble, readAll, replyJson, textOf } from './http-double.js'
import { refusalOf, type PageRules } from './page-rules.js'

/** A call of `/messages` that was taken (read marks and sender actions included). */
export interface GraphSend {
  /** Milliseconds of a monotonic clock. */
  at: number
  id: string
  phoneNumberId: string
  version: string
  to: string
  type: string
  body: Record<string, unknown>
  authorization: string
}

/** What happens to the next call instead of success. */
export type GraphFault =
  | {
      kind: 'error'
      status: number
      code?: number
      subcode?: number
      message?: string
      details?: string
      isTransient?: boolean
      headers?: Record<string, string>
      /** Sent as it is instead of Meta's JSON. */
      text?: string
    }
  /** The message is taken, the answer never comes: the connection is cut. */
  | { kind: 'lost-answer' }
  /** The message is taken, the answer never comes: the connection stays open. */
  | { kind: 'silence' }

export class GraphApiDouble extends HttpDouble {
  readonly sends: GraphSend[] = []
  readonly readMarks: GraphSend[] = []
  /** Of pages: typing and read marks. */
  readonly actions: GraphSend[] = []
  readonly uploads: { id: string; type: string; bytes: number; form?: string }[] = []
  /** Every request line, faulty ones included. */
  readonly requests: string[] = []
  /** Files that users "sent": id → content. */
  readonly files = new Map<string, { data: Uint8Array; mimeType: string }>()

  /** What came as authorization with each request for a file. */
  readonly fileTokens: (string | undefined)[] = []

  private readonly faults: GraphFault[] = []
  private serial = 0

  private revoked = false

  /**
   * @param options.accessToken if given, another token is refused with code 190.
   * @param options.rules what a page's messages must keep to; what breaks them is refused as the platform does.
   */
  constructor(private readonly options: { accessToken?: string; rules?: PageRules } = {}) {
    super()
  }

  /** From now on the token is good for nothing. */
  revokeToken(): void {
    this.revoked = true
  }

  /** Scripts the next calls, one fault each. */
  failNext(...faults: GraphFault[]): void {
    this.faults.push(...faults)
  }

  /** Resolves once that many messages were taken in all. */
  async waitForSends(count: number): Promise<void> {
    await this.until(() => this.sends.length >= count)
  }

  protected async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readAll(request)
    this.requests.push(`${request.method} ${request.url}`)
    this.wake()
    const url = new URL(request.url ?? '/', this.url)
    const file = /^\/files\/(.+)$/.exec(url.pathname)
    if (file !== null) {
      this.fileTokens.push(request.headers.authorization)
      return this.sendFile(decodeURIComponent(file[1]!), response)
    }
    const { accessToken } = this.options
    if (accessToken !== undefined && request.headers.authorization !== `Bearer ${accessToken}`) {
      const given = (request.headers.authorization ?? '').replace(/^Bearer /, '')
      return refuse(response, {
        kind: 'error',
        status: 401,
        code: 190,
        message: `Malformed access token ${given}`,
      })
    }
    if (this.revoked) {
      return refuse(response, {
        kind: 'error',
        status: 401,
        code: 190,
        subcode: 460,
        message: 'Session has ended',
      })
    }
    const fault = this.faults.shift()
    if (fault?.kind === 'error') return refuse(response, fault)
    const result = this.take(request, url, body)
    if (fault?.kind === 'lost-answer') return void response.destroy()
    if (fault?.kind === 'silence') return
    replyJson(response, result.status, result.json)
  }

  private take(request: IncomingMessage, url: URL, body: Buffer): { status: number; json: object } {
    const [, version = '', phoneNumberId = '', edge] = url.pathname.split('/')
    if (request.method === 'POST' && edge === 'messages') {
      return this.takeMessage(version, phoneNumberId, body, request)
    }
    if (request.method === 'POST' && edge === 'media') {
      const id = `media-${++this.serial}`
      this.uploads.push({ id, type: String(request.headers['content-type']), bytes: body.length })
      return { status: 200, json: { id } }
    }
    if (request.method === 'POST' && edge === 'message_attachments') {
      const id = String(99_000 + ++this.serial)
      this.uploads.push({
        id,
        type: String(request.headers['content-type']),
        bytes: body.length,
        form: body.toString('latin1'),
      })
      return { status: 200, json: { attachment_id: id } }
    }
    const file = this.files.get(decodeURIComponent(phoneNumberId))
    if (request.method === 'GET' && file !== undefined) {
      const address = `${this.url}/files/${phoneNumberId}`
      return { status: 200, json: { url: address, mime_type: file.mimeType, messaging_product: 'whatsapp' } }
    }
    return {
      status: 404,
      json: { error: { message: 'Unsupported request', type: 'GraphMethodException', code: 100 } },
    }
  }

  private takeMessage(
    version: string,
    account: string,
    raw: Buffer,
    request: IncomingMessage,
  ): { status: number; json: object } {
    const body = JSON.parse(raw.toString()) as Record<string, unknown>
    const recipient = body['recipient'] as { id?: string } | undefined
    const ofPage = typeof recipient === 'object'
    const send: GraphSend = {
      at: performance.now(),
      id: `${ofPage ? 'm_' : 'wamid.'}DOUBLE${++this.serial}`,
      phoneNumberId: account,
      version,
      to: ofPage ? textOf(recipient.id) : textOf(body['to'] ?? body['recipient']),
      type: ofPage ? 'page' : textOf(body['type']),
      body,
      authorization: request.headers.authorization ?? '',
    }
    return ofPage ? this.takeOfPage(send) : { status: 200, json: this.takeOfNumber(send) }
  }

  private takeOfPage(send: GraphSend): { status: number; json: object } {
    const { rules } = this.options
    const message = rules && refusalOf(send.body, rules)
    if (message !== undefined) {
      return { status: 400, json: { error: { message, type: 'OAuthException', code: 100 } } }
    }
    if (send.body['sender_action'] !== undefined) {
      this.actions.push(send)
      return { status: 200, json: { recipient_id: send.to } }
    }
    this.sends.push(send)
    this.wake()
    return { status: 200, json: { recipient_id: send.to, message_id: send.id } }
  }

  private takeOfNumber(send: GraphSend): object {
    if (send.body['status'] === 'read') {
      this.readMarks.push(send)
      return { success: true }
    }
    this.sends.push(send)
    this.wake()
    return {
      messaging_product: 'whatsapp',
      contacts: [{ input: send.to, wa_id: send.to.replace(/\D/g, '') }],
      messages: [{ id: send.id }],
    }
  }

  private sendFile(id: string, response: ServerResponse): void {
    const file = this.files.get(id)
    if (file === undefined) return void response.writeHead(404).end()
    response.writeHead(200, { 'content-type': file.mimeType }).end(file.data)
  }
}

/** The value of `X-Hub-Signature-256` for a body. */
export function signMetaBody(rawBody: Uint8Array | string, appSecret: string): string {
  return `sha256=${createHmac('sha256', appSecret).update(rawBody).digest('hex')}`
}

/** A webhook body as Meta posts it, holding the given `messages` (Graph form). */
export function metaWebhookBody(
  phoneNumberId: string,
  messages: readonly object[],
  options: { contacts?: readonly object[]; statuses?: readonly object[] } = {},
): string {
  return JSON.stringify({
    object: 'whatsapp_business_account',
    entry: [
      {
        id: '102290129340398',
        changes: [
          {
            field: 'messages',
            value: {
              messaging_product: 'whatsapp',
              metadata: { display_phone_number: '15550783881', phone_number_id: phoneNumberId },
              ...(options.contacts === undefined ? {} : { contacts: options.contacts }),
              ...(messages.length === 0 ? {} : { messages }),
              ...(options.statuses === undefined ? {} : { statuses: options.statuses }),
            },
          },
        ],
      },
    ],
  })
}

/** A text message in Graph form. @param timestamp seconds since the epoch. */
export function metaText(from: string, id: string, body: string, timestamp = 1_767_225_600): object {
  return { from, id, timestamp: String(timestamp), type: 'text', text: { body } }
}

/** A webhook body of Messenger (`page`) or Instagram, holding the given events. @param time milliseconds. */
export function pageWebhookBody(
  object: string,
  accountId: string,
  messaging: readonly object[],
  time = 1_767_225_600_000,
): string {
  return JSON.stringify({ object, entry: [{ id: accountId, time, messaging }] })
}

/** A text message in the form of Messenger and Instagram. @param timestamp milliseconds since the epoch. */
export function pageText(
  from: string,
  accountId: string,
  mid: string,
  text: string,
  timestamp = 1_767_225_600_000,
): object {
  return { sender: { id: from }, recipient: { id: accountId }, timestamp, message: { mid, text } }
}

function refuse(response: ServerResponse, fault: GraphFault & { kind: 'error' }): void {
  if (fault.text !== undefined) {
    response.writeHead(fault.status, { 'content-type': 'text/html', ...fault.headers }).end(fault.text)
    return
  }
  const error = {
    message: fault.message ?? `(#${fault.code ?? 0}) scripted by the double`,
    type: 'OAuthException',
    code: fault.code,
    error_subcode: fault.subcode,
    is_transient: fault.isTransient,
    error_data:
      fault.details === undefined ? undefined : { messaging_product: 'whatsapp', details: fault.details },
    fbtrace_id: 'AdoubleTrace',
  }
  replyJson(response, fault.status, { error }, fault.headers)
}
