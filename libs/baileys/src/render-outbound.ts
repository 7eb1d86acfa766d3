/** Neutral content → what Baileys sends. Pure. WhatsApp Web has no buttons any more: they become numbered lines. */
import type { AnyMessageContent } from '@whiskeysockets/baileys'
import { SendError, type OutgoingContent } from '@botmesh/core'

/** @throws SendError (final) for content that WhatsApp Web cannot carry. */
export function renderOutbound(provider: string, content: OutgoingContent): AnyMessageContent {
  const text = [content.text, buttonLines(content), listLines(content)].filter((part) => !!part).join('\n\n')
  if (content.media !== undefined) return renderMedia(provider, content.media, text)
  if (text === '') throw refuse(provider, 'A message to WhatsApp needs text, media, buttons or a list.')
  return { text }
}

function renderMedia(
  provider: string,
  media: NonNullable<OutgoingContent['media']>,
  text: string,
): AnyMessageContent {
  const source = mediaSource(provider, media)
  const caption = [media.caption, text].filter((part) => !!part).join('\n\n')
  const common = {
    ...(caption === '' ? {} : { caption }),
    ...(media.mimeType === undefined ? {} : { mimetype: media.mimeType }),
  }
  switch (media.kind) {
    case 'image':
      return { image: source, ...common }
    case 'video':
      return { video: source, ...common }
    case 'audio':
      return { audio: source, mimetype: media.mimeType ?? 'audio/mp4' }
    case 'sticker':
      return { sticker: source }
    case 'document':
      return {
        document: source,
        ...common,
        mimetype: media.mimeType ?? 'application/octet-stream',
        fileName: media.fileName ?? 'document',
      }
  }
}

function mediaSource(
  provider: string,
  media: NonNullable<OutgoingContent['media']>,
): Buffer | { url: string } {
  if (media.data !== undefined) return Buffer.from(media.data)
  // Baileys would also read a path from the disk: not what a content that came from anywhere may ask for.
  if (media.url !== undefined && URL.canParse(media.url) && /^https?:$/.test(new URL(media.url).protocol)) {
    return { url: media.url }
  }
  throw refuse(provider, 'Media to WhatsApp needs data or an http(s) url.')
}

function buttonLines(content: OutgoingContent): string | undefined {
  return content.buttons?.map((button, index) => `${index + 1}. ${button.text}`).join('\n')
}

function listLines(content: OutgoingContent): string | undefined {
  let number = 0
  return content.list?.sections
    .map((section) => {
      const rows = section.rows.map((row) => {
        number += 1
        return `${number}. ${row.title}${row.description === undefined ? '' : `: ${row.description}`}`
      })
      return [...(section.title === undefined ? [] : [`*${section.title}*`]), ...rows].join('\n')
    })
    .join('\n\n')
}

/** Where a chat id points: a bare number is a phone's. */
export function jidOf(chatId: string): string {
  return chatId.includes('@') ? chatId : `${chatId.replace(/\D/g, '')}@s.whatsapp.net`
}

function refuse(provider: string, message: string): SendError {
  return new SendError(message, { provider, outcome: 'final' })
}
