/** A message as Baileys emits it → the neutral form. Pure; null for what is no message of somebody to the bot. */
import type { proto, WAMessage } from '@whiskeysockets/baileys'
import type { Media, Message } from '@botmesh/core'

type Content = proto.IMessage

/** What belongs to the type of a message: everything but who, where and when. */
type Body = Pick<Message, 'type' | 'body'> & Partial<Pick<Message, 'media' | 'buttonId' | 'quotedId'>>

/**
 * Null for the account's own messages, status broadcasts, channels and lists, and for protocol messages (keys,
 * deletions, edits, receipts) and texts that could not be decrypted.
 */
export function parseInbound(received: WAMessage): Message | null {
  const { key, message, pushName, messageTimestamp } = received
  const chatId = phoneJid(key.remoteJid, key.remoteJidAlt)
  if (key.fromMe === true || !key.id || chatId === null || message === null || message === undefined)
    return null
  const isGroup = chatId.endsWith('@g.us')
  if (!isGroup && !/@(s\.whatsapp\.net|lid)$/.test(chatId)) return null
  const participant = isGroup ? phoneJid(key.participant ?? received.participant, key.participantAlt) : null
  if (isGroup && participant === null) return null
  const body = parseContent(unwrap(message))
  if (body === null) return null
  return {
    id: key.id,
    chatId,
    from: participant ?? chatId,
    ...(pushName ? { fromName: pushName } : {}),
    ...body,
    isGroup,
    ...(participant === null ? {} : { participant }),
    timestamp: millisecondsOf(messageTimestamp),
    raw: received,
  }
}

/** Seconds, as a number or a 64-bit object; 0 if it is neither. */
function millisecondsOf(timestamp: WAMessage['messageTimestamp']): number {
  const ms = Number(String(timestamp ?? 0)) * 1000
  return Number.isFinite(ms) ? ms : 0
}

/**
 * An address without its device part. The same person may come as a phone number or as a hidden id (`@lid`): the
 * phone number is preferred where the message carries both, so that a chat keeps one key.
 */
function phoneJid(jid: string | null | undefined, alternative: string | null | undefined): string | null {
  const chosen = jid?.endsWith('@lid') && alternative?.endsWith('@s.whatsapp.net') ? alternative : jid
  if (!chosen) return null
  const [user = '', server = ''] = chosen.split('@')
  return `${user.split(':')[0]}@${server === 'c.us' ? 's.whatsapp.net' : server}`
}

/** Takes the wrappings off: disappearing, seen once, with a caption, sent from another device. */
function unwrap(message: Content): Content {
  let content = message
  for (let depth = 0; depth < 6; depth++) {
    const inner =
      content.ephemeralMessage?.message ??
      content.viewOnceMessage?.message ??
      content.viewOnceMessageV2?.message ??
      content.viewOnceMessageV2Extension?.message ??
      content.documentWithCaptionMessage?.message ??
      content.deviceSentMessage?.message
    if (!inner) break
    content = inner
  }
  return content
}

function parseContent(content: Content): Body | null {
  const body = parseText(content) ?? parseMedia(content) ?? parseChoice(content) ?? parseRest(content)
  if (body === null) return null
  const quotedId = body.quotedId ?? contextOf(content)?.stanzaId
  return quotedId ? { ...body, quotedId } : body
}

function contextOf(content: Content): proto.IContextInfo | null | undefined {
  for (const part of Object.values(content) as unknown[]) {
    if (typeof part === 'object' && part !== null && 'contextInfo' in part) {
      return part.contextInfo as proto.IContextInfo | null
    }
  }
  return undefined
}

function parseText(content: Content): Body | null {
  const text = content.conversation || content.extendedTextMessage?.text
  return text ? { type: 'text', body: text } : null
}

const MEDIA = {
  imageMessage: 'image',
  videoMessage: 'video',
  ptvMessage: 'video',
  audioMessage: 'audio',
  documentMessage: 'document',
  stickerMessage: 'sticker',
} as const

/** What a media part may have, whatever its kind. */
interface MediaPart {
  mimetype?: string | null
  caption?: string | null
  fileName?: string | null
  /** A number, a 64-bit object or their text. */
  fileLength?: { toString(): string } | null
  url?: string | null
  directPath?: string | null
  mediaKey?: Uint8Array | null
}

function parseMedia(content: Content): Body | null {
  for (const [name, kind] of Object.entries(MEDIA) as [keyof typeof MEDIA, Media['kind']][]) {
    const part = content[name] as MediaPart | null | undefined
    if (!part) continue
    const size = Number(part.fileLength?.toString() ?? '')
    const media: Media = { kind }
    if (part.mimetype) media.mimeType = part.mimetype
    if (part.fileName) media.fileName = part.fileName
    if (part.caption) media.caption = part.caption
    if (part.fileLength && Number.isFinite(size)) media.sizeBytes = size
    const id = mediaId(part)
    if (id !== null) media.id = id
    return { type: 'media', body: part.caption ?? '', media }
  }
  return null
}

/** Enough to fetch and decrypt the file later, on any replica: `<path or url>#<key>`. */
function mediaId(part: MediaPart): string | null {
  const where = part.directPath ?? part.url
  if (!where || !part.mediaKey) return null
  return `${where}#${Buffer.from(part.mediaKey).toString('base64url')}`
}

export function readMediaId(id: string): { where: string; mediaKey: Uint8Array } | null {
  const at = id.lastIndexOf('#')
  const mediaKey = Buffer.from(id.slice(at + 1), 'base64url')
  return at <= 0 || mediaKey.length !== 32 ? null : { where: id.slice(0, at), mediaKey }
}

/** A button or a list row, in each of the forms that clients have sent them over the years. */
function parseChoice(content: Content): Body | null {
  const button = content.buttonsResponseMessage
  if (button) return choice(button.selectedButtonId, button.selectedDisplayText)
  const template = content.templateButtonReplyMessage
  if (template) return choice(template.selectedId, template.selectedDisplayText)
  const list = content.listResponseMessage
  if (list) return choice(list.singleSelectReply?.selectedRowId, list.title)
  const interactive = content.interactiveResponseMessage
  if (interactive) {
    return choice(flowAnswer(interactive.nativeFlowResponseMessage?.paramsJson), interactive.body?.text)
  }
  return null
}

function choice(id: string | null | undefined, text: string | null | undefined): Body | null {
  if (!id && !text) return null
  return { type: 'button', body: text || (id ?? ''), ...(id ? { buttonId: id } : {}) }
}

function flowAnswer(json: string | null | undefined): string | undefined {
  try {
    const parsed: unknown = JSON.parse(json ?? 'null')
    const id: unknown = (parsed as { id?: unknown } | null)?.id
    return typeof id === 'string' ? id : undefined
  } catch {
    // Not ours to repair: the text of the choice remains.
    return undefined
  }
}

function parseRest(content: Content): Body | null {
  const reaction = content.reactionMessage
  if (reaction) {
    return {
      type: 'reaction',
      body: reaction.text ?? '',
      ...(reaction.key?.id ? { quotedId: reaction.key.id } : {}),
    }
  }
  const location = content.locationMessage ?? content.liveLocationMessage
  if (location) {
    const place = `${location.degreesLatitude ?? 0}, ${location.degreesLongitude ?? 0}`
    const name = content.locationMessage?.name
    return { type: 'location', body: name ? `${name} (${place})` : place }
  }
  const contact = content.contactMessage ?? content.contactsArrayMessage
  if (contact) return { type: 'contact', body: contact.displayName ?? '' }
  const poll = content.pollCreationMessage ?? content.pollCreationMessageV2 ?? content.pollCreationMessageV3
  if (poll) return { type: 'other', body: poll.name ?? '' }
  return null
}
