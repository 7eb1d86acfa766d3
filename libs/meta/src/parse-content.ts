/** What a WhatsApp message says → type, body and media of a neutral one. Pure, lenient. */
import type { Media, Message } from '@botmesh/core'
import { readBody, readMedia, type ParsedOrder } from './webhook-schema.js'

const MEDIA_KINDS: ReadonlySet<string> = new Set<Media['kind']>([
  'image',
  'audio',
  'video',
  'document',
  'sticker',
])

export type Content = Pick<Message, 'type' | 'body'> &
  Partial<Pick<Message, 'media' | 'buttonId' | 'quotedId'>>

/** Readers of the kinds that are not media; each gives undefined for a malformed message. */
const READERS: Readonly<Record<string, (raw: unknown) => Content | undefined>> = {
  text(raw) {
    const data = readBody.text(raw)
    return data && { type: 'text', body: data.text.body }
  },
  button(raw) {
    const data = readBody.button(raw)
    if (data === undefined) return undefined
    const { text: body, payload } = data.button
    return { type: 'button', body, buttonId: payload ?? body }
  },
  interactive: parseInteractive,
  location(raw) {
    const data = readBody.location(raw)
    if (data === undefined) return undefined
    const { latitude, longitude, name, address } = data.location
    return {
      type: 'location',
      body: [name, address, `${latitude},${longitude}`].filter(Boolean).join('\n'),
    }
  },
  contacts(raw) {
    const data = readBody.contacts(raw)
    const lines = data?.contacts.map((one) =>
      [one.name?.formatted_name, ...(one.phones ?? []).map((phone) => phone.phone)].filter(Boolean).join(' '),
    )
    return lines && { type: 'contact', body: lines.join('\n') }
  },
  reaction(raw) {
    const data = readBody.reaction(raw)
    // Without an emoji the reaction was taken back.
    return data && { type: 'reaction', body: data.reaction.emoji ?? '', quotedId: data.reaction.message_id }
  },
  order(raw) {
    const data = readBody.order(raw)
    return data && { type: 'other', body: readableOrder(data.order) }
  },
}

/** @returns undefined for a malformed one. */
export function parseContent(type: string, raw: unknown): Content | undefined {
  if (MEDIA_KINDS.has(type)) return parseMedia(type as Media['kind'], raw)
  // Unsupported kinds and what the platform adds later: the bot may still answer "not understood".
  return Object.hasOwn(READERS, type) ? READERS[type]!(raw) : { type: 'other', body: '' }
}

/** A line for each article, then what was written with them. */
function readableOrder({ product_items: items, text: note }: ParsedOrder): string {
  const lines = items.map(({ quantity, product_retailer_id: article, item_price: price, currency }) =>
    price === undefined
      ? `${quantity} × ${article}`
      : `${quantity} × ${article} (${[price, currency].filter(Boolean).join(' ')})`,
  )
  return [...lines, note].filter(Boolean).join('\n')
}

function parseInteractive(raw: unknown): Content | undefined {
  const data = readBody.interactive(raw)
  if (data === undefined) return undefined
  const choice = data.interactive.button_reply ?? data.interactive.list_reply
  if (choice !== undefined) return { type: 'button', body: choice.title, buttonId: choice.id }
  return { type: 'other', body: data.interactive.nfm_reply?.body ?? '' }
}

function parseMedia(kind: Media['kind'], raw: unknown): Content | undefined {
  const data = readMedia((raw as Record<string, unknown>)[kind])
  if (data === undefined) return undefined
  const media: Media = { kind, id: data.id }
  if (data.mime_type !== undefined) media.mimeType = data.mime_type
  if (data.filename !== undefined) media.fileName = data.filename
  if (data.caption !== undefined) media.caption = data.caption
  if (data.file_size !== undefined) media.sizeBytes = data.file_size
  return { type: 'media', body: data.caption ?? '', media }
}
