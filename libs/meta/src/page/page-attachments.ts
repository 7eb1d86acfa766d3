/** What hangs on a message of Messenger or Instagram → neutral contents. Pure. */
import type { Media, Message } from '@botmesh/core'
import { readAttachment, type ParsedAttachment } from './page-schema.js'

export type AttachmentContent = Pick<Message, 'type' | 'body'> & Partial<Pick<Message, 'media'>>

const MEDIA: Readonly<Record<string, Media['kind']>> = {
  image: 'image',
  animated_image: 'image',
  video: 'video',
  audio: 'audio',
  file: 'document',
  sticker: 'sticker',
}

/** Only the preview of a link that stands in the text. */
const PREVIEW = 'fallback'

/**
 * One content for each file; the text goes with the first, as its caption.
 * @returns at least one: a message of a kind that the platform does not pass on is `other` with an empty body.
 */
export function contentsOf(
  text: string | undefined,
  raw: readonly unknown[],
): [AttachmentContent, ...AttachmentContent[]] {
  const [first, ...more] = raw.length === 0 ? [] : readable(raw, text !== undefined).map(contentOf)
  if (first === undefined) {
    return [text === undefined ? { type: 'other', body: '' } : { type: 'text', body: text }]
  }
  if (text === undefined) return [first, ...more]
  if (first.media === undefined) {
    // A shared post with words about it: the words are what was said.
    return [{ ...first, body: [text, first.body].filter(Boolean).join('\n') }, ...more]
  }
  return [{ ...first, body: text, media: { ...first.media, caption: text } }, ...more]
}

function readable(raw: readonly unknown[], hasText: boolean): ParsedAttachment[] {
  const all = raw
    .map(readAttachment)
    .filter((one): one is ParsedAttachment => one !== undefined && !(hasText && one.type === PREVIEW))
  const types = new Set(all.map((one) => one.type))
  // Some things come twice while the platform changes its form: once in the old one, once in the new one.
  return all.filter(
    ({ type, payload }) =>
      !(type === 'image' && payload?.sticker_id !== undefined && types.has('sticker')) &&
      !(type === 'share' && types.has('ig_post')),
  )
}

function contentOf({ type, title, url, payload }: ParsedAttachment): AttachmentContent {
  const kind = type === 'image' && payload?.sticker_id !== undefined ? 'sticker' : MEDIA[type]
  if (kind !== undefined) {
    const media: Media = { kind }
    if (payload?.url !== undefined) media.url = payload.url
    if (payload?.attachment_id !== undefined) media.id = payload.attachment_id
    return { type: 'media', body: '', media }
  }
  if (type === 'location' && payload?.coordinates !== undefined) {
    const { lat, long } = payload.coordinates
    return { type: 'location', body: [title, `${lat},${long}`].filter(Boolean).join('\n') }
  }
  // Shared posts, reels, stories, links, templates.
  const lines = [title ?? payload?.title, payload?.url ?? url]
  return { type: 'other', body: lines.filter(Boolean).join('\n') }
}
