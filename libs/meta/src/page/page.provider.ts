/** What Messenger's and Instagram's providers share: wiring of parsing, rendering and calls. */
import type {
  OutgoingContent,
  ProviderCapabilities,
  ProviderSink,
  SendOptions,
  SendTarget,
  Sent,
} from '@botmesh/core'
import { MIB } from '../media-upload.js'
import { WebhookProvider } from '../webhook-provider.js'
import { parsePage, type PageEvent } from './page-inbound.js'
import type { PageSettings } from './page-options.js'
import { renderAction, renderPage } from './page-outbound.js'
import { PageClient } from './page.client.js'

type ReceiptEvent = Extract<PageEvent, { kind: 'receipt' }>

const DOWNLOAD_BYTES = 25 * MIB

export abstract class PageProvider extends WebhookProvider<ReceiptEvent> {
  readonly capabilities: ProviderCapabilities

  private readonly client: PageClient

  constructor(private readonly settings: PageSettings) {
    super(settings, settings.platform.name)
    this.capabilities = {
      buttons: true,
      list: true,
      media: true,
      uncertainSends: 'skip',
      receives: settings.platform.receives,
      sends: ['text', 'media', 'buttons', 'quotes', 'typing', 'read marks'],
    }
    this.client = new PageClient(settings)
  }

  /**
   * Sends one message; with `media.data` an upload comes before it. A media and its text, and a long text, are
   * several messages on the platform; the id is that of the last. Needs no running session.
   * @throws SendError with the platform's code, and the reason of `options.signal` if it aborted beforehand.
   */
  async send(to: SendTarget, content: OutgoingContent, options: SendOptions = {}): Promise<Sent> {
    options.signal?.throwIfAborted()
    const { id: provider, platform, longText } = this.settings
    const { media } = content
    const render = (ready: OutgoingContent) => renderPage(to, ready, { provider, platform, longText })
    if (media?.data === undefined || media.id !== undefined) return this.post(render(content), options)
    // What could not be sent anyway is refused before the upload.
    render({ ...content, media: { ...media, id: 'not yet' } })
    const id = await this.client.upload(media, this.clock)
    return this.post(render({ ...content, media: { ...media, id } }), options)
  }

  /** Shows "typing…" for about twenty seconds or until the next message; `on: false` ends it. @throws SendError */
  async typing(to: SendTarget, options: { on?: boolean } = {}): Promise<void> {
    await this.client.act(renderAction(to, options.on === false ? 'typing_off' : 'typing_on'), this.clock)
  }

  /** Tells the user that all they wrote was read. @throws SendError */
  async markRead(to: SendTarget): Promise<void> {
    await this.client.act(renderAction(to, 'mark_seen'), this.clock)
  }

  /**
   * Fetches a media of an inbound message; the platform's links end after some days.
   * @param options.maxBytes default 25 MiB. @throws SendError
   */
  async download(
    media: { url?: string },
    options: { maxBytes?: number } = {},
  ): Promise<{ data: Uint8Array; mimeType?: string }> {
    return this.client.download(media.url, options.maxBytes ?? DOWNLOAD_BYTES, this.clock)
  }

  protected parse(body: unknown): PageEvent[] {
    return parsePage(body, this.settings)
  }

  protected note(event: ReceiptEvent, sink: ProviderSink): void {
    const { receipt } = event
    sink.logger.debug({ provider: this.id, ...receipt }, 'messages were delivered or read')
    this.tell(this.settings.onReceipt, receipt)
  }

  private post(bodies: readonly object[], options: SendOptions): Promise<Sent> {
    return this.sendParts(bodies, (body) => this.client.send(body, this.clock), options.signal)
  }
}
