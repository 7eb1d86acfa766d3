/**
 * Discord as a transport, on discord.js: the gateway for what comes in, the REST API for what goes out. Exclusive (P1):
 * one replica connects, the others stand by. Wiring only; see discord-session.ts for the life of one start.
 */
import {
  ConfigError,
  SendError,
  SessionStarts,
  systemClock,
  type Media,
  type OutgoingContent,
  type Provider,
  type ProviderCapabilities,
  type ProviderSink,
  type ProviderState,
  type SendOptions,
  type SendTarget,
  type Sent,
} from '@botmesh/core'
import { createHash } from 'node:crypto'
import { Routes } from 'discord.js'
import { DiscordSession } from './discord-session.js'
import { DiscordClient } from './discord.client.js'
import { Interactions } from './interactions.js'
import { readOptions, type DiscordOptions, type DiscordSettings } from './options.js'
import { renderOutbound, type RenderedMessage } from './render-outbound.js'

/** Discord's limit of a nonce is 25 characters. */
const NONCE_CHARS = 25
const DOWNLOAD_BYTES = 25 * 1024 * 1024

export class DiscordProvider implements Provider {
  readonly id: string
  readonly capabilities: ProviderCapabilities = {
    exclusiveSession: true,
    buttons: true,
    list: true,
    media: true,
    groups: true,
    uncertainSends: 'skip',
    receives: [
      'text',
      'media',
      'button replies',
      'list replies',
      'commands',
      'quotes',
      'mentions',
      'threads',
      'groups',
    ],
    sends: ['text', 'media', 'buttons', 'lists', 'embeds', 'quotes', 'edits', 'typing', 'threads'],
  }

  private readonly settings: DiscordSettings
  private readonly client: DiscordClient
  private readonly interactions: Interactions
  private readonly starts = new SessionStarts<DiscordSession>()

  /** @throws ConfigError */
  constructor(options: DiscordOptions) {
    this.settings = readOptions(options)
    this.id = this.settings.id
    this.client = new DiscordClient(this.settings)
    this.interactions = new Interactions(this.id, this.client)
  }

  get state(): ProviderState {
    return this.starts.state
  }

  /**
   * Connects. Starting twice without `stop` keeps the first sink (scenario 21).
   * @throws ProviderError `final` if Discord refuses the token or the intents (scenario 23).
   */
  start(sink: ProviderSink, signal: AbortSignal): Promise<void> {
    const { client, interactions, settings } = this
    // What is left of an earlier start ends first: never two connections of one process.
    return this.starts.start(
      () => new DiscordSession({ client, interactions, settings, sink, leadership: signal }),
    )
  }

  async stop(): Promise<void> {
    await this.starts.stop()
  }

  /**
   * Sends one message, or several if the text is longer than Discord takes; the id is that of the last. In the turn of
   * a command or a button it goes out as the answer to that one. Needs no connection to the gateway.
   * @throws SendError, and the reason of `options.signal` if it aborted before the request was begun.
   */
  async send(to: SendTarget, content: OutgoingContent, options: SendOptions = {}): Promise<Sent> {
    options.signal?.throwIfAborted()
    const messages = renderOutbound(this.id, content, this.settings)
    const call = options.signal === undefined ? {} : { signal: options.signal }
    const now = (this.starts.session?.sink.clock ?? systemClock).monotonic()
    const inboundId = content.replyTo?.startsWith('interaction:') ? content.replyTo : options.inboundId
    const answered = await this.interactions.answer(inboundId, to.chatId, messages, now, call)
    return { id: answered ?? (await this.post(to.chatId, messages, options)) }
  }

  /** Replaces a message that this bot sent. @param id as `send` returned it. @throws SendError */
  async edit(to: SendTarget, id: string, content: OutgoingContent): Promise<void> {
    const [message, more] = renderOutbound(this.id, content, { ...this.settings, longText: 'refuse' })
    if (message === undefined || more !== undefined) throw this.final('An edit is one message.')
    const { message_reference: _reference, ...body } = message.body
    const cleared = { content: '', embeds: [], components: [] }
    await this.client.write('PATCH', Routes.channelMessage(to.chatId, id), {
      body: { ...cleared, ...body },
      files: message.files,
    })
  }

  /** Shows "typing…" for ten seconds or until the next message. @throws SendError */
  async typing(to: SendTarget): Promise<void> {
    await this.client.act('typing', 'POST', Routes.channelTyping(to.chatId))
  }

  /**
   * The chat id of a user's direct messages, to write to them first. @throws SendError `final` if Discord does not
   * know the user.
   */
  async directChat(userId: string): Promise<string> {
    const channel = await this.client.act('the direct chat', 'POST', Routes.userChannels(), {
      body: { recipient_id: userId },
    })
    const { id } = (channel ?? {}) as { id?: unknown }
    if (typeof id !== 'string') throw this.final('Discord named no channel.')
    return id
  }

  /** Fetches an attachment that came in, for about a day. @param options.maxBytes default 25 MiB. @throws SendError */
  async download(media: Media, options: { maxBytes?: number } = {}): Promise<{ data: Uint8Array }> {
    if (media.url === undefined) {
      throw new ConfigError('This media has no url: only attachments of Discord can be fetched.', {
        option: 'media.url',
        accepted: 'the media of an inbound message',
      })
    }
    const clock = this.starts.session?.sink.clock ?? systemClock
    return { data: await this.client.download(media.url, options.maxBytes ?? DOWNLOAD_BYTES, clock) }
  }

  private async post(
    chatId: string,
    messages: readonly RenderedMessage[],
    { signal, idempotencyKey }: SendOptions,
  ): Promise<string> {
    let id: string | undefined
    for (const [index, { body, files }] of messages.entries()) {
      const nonce = idempotencyKey === undefined ? undefined : nonceOf(idempotencyKey, index)
      const unique = nonce === undefined ? {} : { nonce, enforce_nonce: true }
      try {
        id = await this.client.write(
          'POST',
          Routes.channelMessages(chatId),
          { body: { ...body, ...unique }, files },
          { repeatable: nonce !== undefined, ...(signal === undefined ? {} : { signal }) },
        )
      } catch (error) {
        // With a key a repeat finds the parts that arrived; without one they would be written twice.
        if (id === undefined || nonce !== undefined) throw error
        throw new SendError(
          `Only ${index} of ${messages.length} parts of the text arrived.`,
          { provider: this.id, outcome: 'uncertain' },
          error,
        )
      }
    }
    return id ?? ''
  }

  private final(message: string): SendError {
    return new SendError(message, { provider: this.id, outcome: 'final' })
  }
}

/** The same for every attempt of one send: Discord recognises a repeat within some minutes. */
function nonceOf(idempotencyKey: string, part: number): string {
  return createHash('sha256').update(`${idempotencyKey}/${part}`).digest('base64url').slice(0, NONCE_CHARS)
}
