/** WhatsApp Cloud API as a transport. Wiring only; parsing, rendering and calls are in their own files. */
import type {
  OutgoingContent,
  ProviderCapabilities,
  ProviderSink,
  SendOptions,
  SendTarget,
  Sent,
} from '@botmesh/core'
import { MetaClient } from './meta.client.js'
import { readOptions, type MetaOptions, type MetaSettings } from './options.js'
import { parseInbound, type MetaEvent, type MetaStatus } from './parse-inbound.js'
import { renderMessages, renderReadMark } from './render-outbound.js'
import { WebhookProvider } from './webhook-provider.js'

type StatusEvent = Extract<MetaEvent, { kind: 'status' }>

export class MetaProvider extends WebhookProvider<StatusEvent> {
  readonly capabilities: ProviderCapabilities = {
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
      'reactions',
      'quotes',
      'locations',
      'contacts',
      'groups',
    ],
    sends: ['text', 'media', 'buttons', 'lists', 'templates', 'quotes', 'typing', 'read marks'],
  }

  private readonly settings: MetaSettings
  private readonly client: MetaClient

  /** @throws ConfigError */
  constructor(options: MetaOptions) {
    const settings = readOptions(options)
    super(settings, 'WhatsApp')
    this.settings = settings
    this.client = new MetaClient(settings)
  }

  /**
   * Sends one message; with `media.data` an upload comes before it. A text over 4096 characters, or under a media
   * that takes none, follows in messages of its own. Needs no running session.
   * @throws SendError with the platform's code, and the reason of `options.signal` if it aborted beforehand.
   */
  async send(to: SendTarget, content: OutgoingContent, options: SendOptions = {}): Promise<Sent> {
    options.signal?.throwIfAborted()
    const ready = await this.withUploadedMedia(content)
    const bodies = renderMessages(
      this.id,
      to,
      ready,
      options.idempotencyKey === undefined ? {} : { sendKey: options.idempotencyKey },
    )
    return this.sendParts(bodies, (body) => this.client.send(body, this.clock), options.signal)
  }

  /** Shows the blue ticks for a message and all before it; with `typing` also that an answer is being written. */
  async markRead(messageId: string, options: { typing?: boolean } = {}): Promise<void> {
    await this.client.mark(renderReadMark(messageId, options.typing === true), this.clock)
  }

  /** Fetches a media that a message named. @param options.maxBytes default 100 MiB. @throws SendError */
  async download(
    media: { id?: string },
    options: { maxBytes?: number } = {},
  ): Promise<{ data: Uint8Array; mimeType?: string }> {
    return this.client.download(media.id ?? '', options.maxBytes ?? 100 * 1024 * 1024, this.clock)
  }

  protected parse(body: unknown): MetaEvent[] {
    return parseInbound(body, this.settings.phoneNumberId)
  }

  protected note(event: StatusEvent, sink: ProviderSink): void {
    const { messageId, status, error } = event.status
    const level = status === 'failed' ? 'warn' : 'debug'
    sink.logger[level]({ provider: this.id, messageId, status, error }, 'message status')
    this.tell<MetaStatus>(this.settings.onStatus, event.status)
  }

  private async withUploadedMedia(content: OutgoingContent): Promise<OutgoingContent> {
    const { media } = content
    if (media?.data === undefined || media.id !== undefined || content.template !== undefined) return content
    return { ...content, media: { ...media, id: await this.client.upload(media, this.clock) } }
  }
}
