/** Neutral content → what the page shows. Pure; refuses what a page cannot or must not show. */
import { SendError, type OutgoingContent } from '@botmesh/core'
import type { LoggedMessage } from './protocol.js'

/** Bytes sent inline travel through the log; larger files need a URL. */
const MAX_INLINE_BYTES = 256 * 1024

/**
 * @param id what copies of this send have in common (the idempotency key), if anything.
 * @throws SendError (final) for content that the page cannot show.
 */
export function renderOutbound(
  provider: string,
  content: OutgoingContent,
  now: number,
  id?: string,
): LoggedMessage {
  const rendered: LoggedMessage = { v: 1, from: 'bot', at: now }
  if (id !== undefined) rendered.id = id
  if (content.text !== undefined && content.text !== '') rendered.text = content.text
  if (content.media !== undefined) rendered.media = renderMedia(provider, content.media)
  if (content.buttons !== undefined && content.buttons.length > 0) {
    rendered.buttons = content.buttons.map((button) => ({ id: button.id, text: button.text }))
  }
  if (content.list !== undefined) rendered.list = content.list
  if (content.replyTo !== undefined) rendered.replyTo = content.replyTo
  if (
    rendered.text === undefined &&
    rendered.media === undefined &&
    rendered.buttons === undefined &&
    rendered.list === undefined
  ) {
    throw refuse(provider, 'A message to the web chat needs text, media, buttons or a list.')
  }
  return rendered
}

function renderMedia(
  provider: string,
  media: NonNullable<OutgoingContent['media']>,
): NonNullable<LoggedMessage['media']> {
  return {
    kind: media.kind,
    url: mediaUrl(provider, media),
    ...(media.mimeType === undefined ? {} : { mimeType: media.mimeType }),
    ...(media.fileName === undefined ? {} : { fileName: media.fileName }),
    ...(media.caption === undefined ? {} : { caption: media.caption }),
  }
}

function mediaUrl(provider: string, media: NonNullable<OutgoingContent['media']>): string {
  if (media.url !== undefined) {
    // Anything else (javascript:, file:) has no business in somebody's browser.
    if (URL.canParse(media.url) && /^https?:$/.test(new URL(media.url).protocol)) return media.url
    throw refuse(provider, 'Media of the web chat needs an http(s) URL.')
  }
  if (media.data === undefined) throw refuse(provider, 'Media of the web chat needs a url or data.')
  if (media.data.byteLength > MAX_INLINE_BYTES) {
    throw refuse(
      provider,
      `Inline media of ${media.data.byteLength} bytes is over ${MAX_INLINE_BYTES}: give a url instead.`,
    )
  }
  const type = media.mimeType ?? 'application/octet-stream'
  if (!/^[\w.+-]+\/[\w.+-]+$/.test(type)) throw refuse(provider, 'The mimeType of the media is not one.')
  return `data:${type};base64,${Buffer.from(media.data).toString('base64')}`
}

function refuse(provider: string, message: string): SendError {
  return new SendError(message, { provider, outcome: 'final' })
}
