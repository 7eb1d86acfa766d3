/** The calls of Messenger's and Instagram's API that the provider needs, on the shared Graph client. */
import { ConfigError, SendError, type Clock } from '@botmesh/core'
import { z } from 'zod'
import { graphClientFor, type GraphClient } from '../graph-client.js'
import { fileOf, refuseLargeUpload, type OutgoingMedia } from '../media-upload.js'
import type { PageSettings } from './page-options.js'
import { ATTACHMENT_TYPES } from './platform.js'

const sentSchema = z.object({ message_id: z.string().min(1) })
const uploadedSchema = z.object({ attachment_id: z.union([z.string().min(1), z.number()]) })

export class PageClient {
  private readonly graph: GraphClient

  constructor(private readonly settings: PageSettings) {
    this.graph = graphClientFor(settings)
  }

  /** @returns the platform's id of the message. @throws SendError */
  async send(body: object, clock: Clock): Promise<string> {
    const answer = await this.graph.call({ method: 'POST', path: 'me/messages', body, effect: true, clock })
    const { data } = sentSchema.safeParse(answer)
    if (data === undefined) throw this.strange('a send names no message', 'uncertain')
    return data.message_id
  }

  /** Typing and read marks: doing it twice changes nothing. @throws SendError */
  async act(body: object, clock: Clock): Promise<void> {
    await this.graph.call({ method: 'POST', path: 'me/messages', body, effect: false, clock })
  }

  /**
   * Uploads bytes; nothing is shown to anybody yet, so a failure is never uncertain.
   * @throws SendError, `final` beforehand for a file that the platform would refuse for its size.
   */
  async upload(media: OutgoingMedia, clock: Clock): Promise<string> {
    const { id, platform } = this.settings
    refuseLargeUpload(id, media, platform.uploads)
    const attachment = { type: ATTACHMENT_TYPES[media.kind], payload: { is_reusable: true } }
    const { blob, name } = fileOf(media)
    const form = new FormData()
    for (const [field, value] of Object.entries(platform.uploadFields)) form.set(field, value)
    form.set('message', JSON.stringify({ attachment }))
    form.set('filedata', blob, name)
    const answer = await this.graph.call({
      method: 'POST',
      path: 'me/message_attachments',
      body: form,
      effect: false,
      clock,
    })
    const { data } = uploadedSchema.safeParse(answer)
    if (data === undefined) throw this.strange('an upload names no attachment', 'retryable')
    return String(data.attachment_id)
  }

  /** Fetches what a user sent, by the link that came with it. @throws SendError, ConfigError for no link. */
  async download(
    url: string | undefined,
    maxBytes: number,
    clock: Clock,
  ): Promise<{ data: Uint8Array; mimeType?: string }> {
    if (url === undefined || !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
      throw new ConfigError('This media has no link: only media of inbound messages can be fetched.', {
        option: 'media.url',
        accepted: 'the media of an inbound message',
      })
    }
    return this.graph.download(url, maxBytes, clock, { withToken: false })
  }

  private strange(what: string, outcome: 'uncertain' | 'retryable'): SendError {
    return new SendError(`Graph API: the answer to ${what}.`, { provider: this.settings.id, outcome })
  }
}
