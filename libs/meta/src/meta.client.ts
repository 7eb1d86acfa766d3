/** The Cloud API's calls that the provider needs, on the shared Graph client. All I/O of this package is here. */
import { SendError, type Clock } from '@botmesh/core'
import { z } from 'zod'
import { graphClientFor, type GraphClient } from './graph-client.js'
import {
  fileOf,
  MIB,
  mimeTypeOf,
  refuseLargeUpload,
  type OutgoingMedia,
  type UploadLimits,
} from './media-upload.js'
import type { MetaSettings } from './options.js'

const sentSchema = z.object({ messages: z.array(z.object({ id: z.string().min(1) })).min(1) })
const uploadedSchema = z.object({ id: z.string().min(1) })
const mediaSchema = z.object({ url: z.string(), mime_type: z.string().optional() })

/** What WhatsApp takes. */
const LARGEST: UploadLimits = {
  image: 5 * MIB,
  audio: 16 * MIB,
  video: 16 * MIB,
  document: 100 * MIB,
  sticker: MIB / 2,
}

export class MetaClient {
  private readonly graph: GraphClient
  private readonly provider: string
  private readonly phoneNumberId: string

  constructor(settings: MetaSettings) {
    this.provider = settings.id
    this.phoneNumberId = settings.phoneNumberId
    this.graph = graphClientFor(settings)
  }

  /** @returns the platform's id of the message. @throws SendError */
  async send(body: object, clock: Clock): Promise<string> {
    const answer = await this.graph.call({
      method: 'POST',
      path: `${this.phoneNumberId}/messages`,
      body,
      effect: true,
      clock,
    })
    const parsed = sentSchema.safeParse(answer)
    if (!parsed.success) throw this.strange('the answer to a send names no message', 'uncertain')
    return parsed.data.messages[0]!.id
  }

  /** Marks as read or shows typing: doing it twice changes nothing. @throws SendError */
  async mark(body: object, clock: Clock): Promise<void> {
    await this.graph.call({
      method: 'POST',
      path: `${this.phoneNumberId}/messages`,
      body,
      effect: false,
      clock,
    })
  }

  /**
   * Uploads bytes; nothing is shown to anybody yet, so a failure is never uncertain.
   * @throws SendError, `final` beforehand for a file that WhatsApp would refuse for its size.
   */
  async upload(media: OutgoingMedia, clock: Clock): Promise<string> {
    refuseLargeUpload(this.provider, media, LARGEST)
    const { blob, name } = fileOf(media)
    const form = new FormData()
    form.set('messaging_product', 'whatsapp')
    form.set('type', mimeTypeOf(media))
    form.set('file', blob, name)
    const answer = await this.graph.call({
      method: 'POST',
      path: `${this.phoneNumberId}/media`,
      body: form,
      effect: false,
      clock,
    })
    const parsed = uploadedSchema.safeParse(answer)
    if (!parsed.success) throw this.strange('the answer to an upload names no media', 'retryable')
    return parsed.data.id
  }

  /** Fetches what a user sent. @throws SendError */
  async download(
    mediaId: string,
    maxBytes: number,
    clock: Clock,
  ): Promise<{ data: Uint8Array; mimeType?: string }> {
    const path = encodeURIComponent(mediaId)
    const parsed = mediaSchema.safeParse(await this.graph.call({ method: 'GET', path, effect: false, clock }))
    if (!parsed.success) throw this.strange('the answer about a media names no address', 'retryable')
    const { data } = await this.graph.download(parsed.data.url, maxBytes, clock)
    return { data, ...(parsed.data.mime_type === undefined ? {} : { mimeType: parsed.data.mime_type }) }
  }

  private strange(what: string, outcome: 'uncertain' | 'retryable'): SendError {
    return new SendError(`Graph API: ${what}.`, { provider: this.provider, outcome })
  }
}
