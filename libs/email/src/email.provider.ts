/**
 * E-mail as a transport: received from a mailbox over IMAP (exclusive: one replica is connected, the others stand by)
 * or handed in as MIME (shared: every replica receives), sent over SMTP. Wiring only; see session.ts for the life of
 * one start, addresses.ts for what a chat is, manners.ts for what is not answered.
 */
import { createHash } from 'node:crypto'
import {
  ProviderError,
  SendError,
  SessionStarts,
  systemClock,
  systemRandom,
  webhookAnswer,
  type OutgoingContent,
  type Provider,
  type ProviderCapabilities,
  type ProviderSink,
  type ProviderState,
  type SendOptions,
  type SendTarget,
  type Sent,
  type WebhookRequest,
  type WebhookResponse,
} from '@botmesh/core'
import { ownId, readChatId } from './addresses.js'
import { FileShelf } from './file-shelf.js'
import { ImapSession } from './imap-session.js'
import { IngestSession, type Ingested } from './ingest-session.js'
import { readOptions, type EmailOptions, type EmailSettings } from './options.js'
import { outgoingFile } from './outgoing-file.js'
import { readFileId, type ThreadState } from './parse-inbound.js'
import type { MailFile } from './read-mail.js'
import { renderOutbound, renderText } from './render-outbound.js'
import type { Session } from './session.js'
import { SmtpClient } from './smtp.client.js'
import { Threads } from './threads.js'
import { isAuthorised, mailInBody } from './webhook-body.js'

/** What a request has besides the mail: base64 in JSON takes a third more. */
const BODY_FACTOR = 1.5

export class EmailProvider implements Provider {
  readonly id: string
  readonly capabilities: ProviderCapabilities
  /** Present with `webhook` only. */
  readonly handle?: (request: WebhookRequest) => Promise<WebhookResponse>

  private readonly settings: EmailSettings
  private readonly smtp: SmtpClient
  private readonly threads: Threads
  private readonly shelf = new FileShelf()
  private readonly starts = new SessionStarts<Session>()

  /** @throws ConfigError */
  constructor(options: EmailOptions) {
    this.settings = readOptions(options)
    this.id = this.settings.id
    this.smtp = new SmtpClient(this.settings)
    this.threads = new Threads(this.id)
    this.capabilities = {
      media: true,
      uncertainSends: this.settings.uncertainSends,
      receives: ['text', 'media', 'threads'],
      sends: ['text', 'media', 'threads'],
      ...(this.settings.imap === null ? {} : { exclusiveSession: true }),
    }
    if (this.settings.webhook !== null) this.handle = (request) => this.receive(request)
  }

  get state(): ProviderState {
    return this.starts.state
  }

  private get session(): Session | undefined {
    return this.starts.session
  }

  /**
   * Connects to the mailbox, or takes mail from now on. Starting twice without `stop` keeps the first sink
   * (scenario 21).
   * @throws ProviderError if the login or the certificate is refused.
   */
  start(sink: ProviderSink, signal: AbortSignal): Promise<void> {
    const { settings, smtp, threads, shelf } = this
    const parts = { settings, smtp, threads, shelf, sink, leadership: signal }
    // What is left of an earlier start ends first: an account has one connection.
    return this.starts.start(() =>
      settings.imap === null ? new IngestSession(parts) : new ImapSession(parts),
    )
  }

  async stop(): Promise<void> {
    await this.starts.stop()
  }

  /**
   * Sends one mail: into the thread of the chat, or beginning one if the chat is a bare address.
   * @throws SendError, and the reason of `options.signal` if it aborted beforehand.
   */
  async send(to: SendTarget, content: OutgoingContent, options: SendOptions = {}): Promise<Sent> {
    options.signal?.throwIfAborted()
    const { settings, id: provider } = this
    const chat = readChatId(to.chatId)
    if (chat === null) throw this.refuse(`"${to.chatId}" is no address that mail can be sent to.`)
    const clock = this.session?.sink.clock ?? systemClock
    this.checkThreadLimit(to.chatId)
    const text = renderText(provider, content)
    const file = content.media === undefined ? null : await outgoingFile(content.media, this.fileRules())
    const known = await this.threadOf(to.chatId)
    const thread = known === null ? null : answering(known, content.replyTo)
    const messageId = ownId(settings.mark, chat.thread, this.uniqueFor(options.idempotencyKey))
    const raw = await renderOutbound({
      ...{ provider, messageId, thread, text, file },
      from: settings,
      to: chat.address,
      subject: settings.subject,
      isAnswer: thread !== null || chat.thread !== null,
      date: new Date(clock.now()),
    })
    options.signal?.throwIfAborted()
    await this.smtp.send(chat.address, raw)
    this.threads.sent(to.chatId, clock)
    if (thread !== null) this.session?.noteAnswered(thread.lastId)
    return { id: messageId }
  }

  /**
   * Hands in one mail as it came (MIME), where there is no mailbox to read. Resolves once the runtime has accepted
   * it, or when it is none of the bot's business (`ignored`). A `failed` or `stopped` one must be handed in again.
   * Never rejects.
   */
  async ingest(rawMime: Uint8Array | string): Promise<Ingested> {
    const raw = typeof rawMime === 'string' ? Buffer.from(rawMime) : rawMime
    return this.session instanceof IngestSession ? this.session.accept(raw) : { status: 'stopped' }
  }

  /**
   * Fetches a file that a message named. Without a mailbox only those of the last mails of this replica are there.
   * @param options.maxBytes default `maxMessageBytes`
   * @throws ProviderError if it is there no more, or larger
   */
  async download(media: { id?: string }, options: { maxBytes?: number } = {}): Promise<{ data: Uint8Array }> {
    const file = await this.received(media.id ?? '')
    const maxBytes = options.maxBytes ?? this.settings.maxMessageBytes
    if (file !== null && file.bytes.byteLength <= maxBytes) return { data: file.bytes }
    const reason =
      file === null
        ? 'the file is there no more: without IMAP only the last ones are kept, on the replica that got them'
        : `the file has ${file.bytes.byteLength} bytes, and maxBytes is ${maxBytes}`
    throw new ProviderError(`The file cannot be had: ${reason}.`, { provider: this.id, reason, final: true })
  }

  /** One webhook call: 200 once the mail is accepted, 503 if it was not, 4xx for what is not acceptable (scenario 25). */
  private async receive(request: WebhookRequest): Promise<WebhookResponse> {
    if (request.method !== 'POST') return webhookAnswer(405, 'use POST', { allow: 'POST' })
    if (request.rawBody.byteLength > this.settings.maxMessageBytes * BODY_FACTOR) {
      return webhookAnswer(413, 'body too large')
    }
    if (!isAuthorised(request, this.settings.webhook!.secret)) {
      return webhookAnswer(401, 'secret missing or wrong')
    }
    const { session } = this
    if (!(session instanceof IngestSession) || session.over)
      return webhookAnswer(503, 'this replica stands by')
    const body = await mailInBody(request)
    if (body.kind === 'refused') return webhookAnswer(400, body.reason)
    if (body.kind === 'ignored') {
      session.sink.logger.debug({ provider: this.id, reason: body.reason }, 'webhook ignored')
      return webhookAnswer(200, 'ignored')
    }
    const { status } = await session.accept(body.raw)
    switch (status) {
      case 'accepted':
      case 'ignored':
        return webhookAnswer(200, 'ok')
      case 'not-a-mail':
        return webhookAnswer(400, 'not a mail')
      case 'too-large':
        return webhookAnswer(413, 'mail too large')
      case 'failed':
      case 'stopped':
        return webhookAnswer(503, 'not accepted')
    }
  }

  /** As remembered, else as the mailbox or the store's log has it. */
  private async threadOf(chatId: string): Promise<ThreadState | null> {
    const remembered = this.threads.recall(chatId)
    if (remembered !== null) return remembered
    const found = (await this.session?.findThread(chatId)) ?? null
    if (found !== null) this.threads.remember(chatId, found)
    return found
  }

  private checkThreadLimit(chatId: string): void {
    const clock = this.session?.sink.clock ?? systemClock
    const { maxRepliesPerThread } = this.settings
    if (this.threads.recentlySent(chatId, clock) < maxRepliesPerThread) return
    throw this.refuse(
      `${maxRepliesPerThread} mails went to "${chatId}" within an hour: is it a machine that answers? Raise maxRepliesPerThread if not.`,
    )
  }

  /** The same for every attempt of one send, so that mail servers and programs see copies for what they are. */
  private uniqueFor(idempotencyKey: string | undefined): string {
    return idempotencyKey === undefined
      ? (this.session?.sink.random ?? systemRandom).uuid()
      : createHash('sha256').update(`${this.id}\n${idempotencyKey}`).digest('hex').slice(0, 32)
  }

  private fileRules() {
    const { maxAttachmentBytes, sendTimeoutMs } = this.settings
    return {
      provider: this.id,
      maxBytes: maxAttachmentBytes,
      timeoutMs: sendTimeoutMs,
      received: (id: string) => this.received(id),
    }
  }

  private async received(id: string): Promise<MailFile | null> {
    const place = readFileId(id)
    if (place === undefined) return null
    return this.shelf.get(id) ?? (await this.session?.findFile(place.mailId, place.number)) ?? null
  }

  private refuse(message: string): SendError {
    return new SendError(message, { provider: this.id, outcome: 'final' })
  }
}

/** The thread with another mail of it answered than the last. A file's message is part of its mail. */
function answering(thread: ThreadState, replyTo: string | undefined): ThreadState {
  const lastId = replyTo?.replace(/#\d+$/, '')
  if (lastId === undefined || lastId === thread.lastId || /[\s<>]/.test(lastId)) return thread
  const references = thread.references.filter((id) => id !== lastId)
  return { ...thread, lastId, references: [...references, lastId] }
}
