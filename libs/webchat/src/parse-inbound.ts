/** Page frame → neutral message. Pure. */
import type { Message } from '@botmesh/core'
import type { FileFrame, MessageFrame } from './protocol.js'
import { kindOf, safeFileName } from './uploads.js'

/**
 * The id joins visitor and page id, because a page chooses the latter: it could otherwise pass for a message of
 * somebody else. `timestamp` is the server's: visitors' clocks are not to be trusted.
 */
export function parseInbound(
  frame: MessageFrame,
  visitor: { id: string; lang?: string | undefined },
  now: number,
): Message {
  return {
    id: inboundId(visitor.id, frame.cid),
    chatId: visitor.id,
    from: visitor.id,
    type: frame.buttonId === undefined ? 'text' : 'button',
    body: frame.text,
    ...(frame.buttonId === undefined ? {} : { buttonId: frame.buttonId }),
    isGroup: false,
    ...(frame.replyTo === undefined ? {} : { quotedId: frame.replyTo }),
    timestamp: now,
    ...(visitor.lang === undefined ? {} : { lang: visitor.lang }),
    raw: frame,
  }
}

/** A file whose content is kept under `fileId`. Name and type are the page's claim, the name made safe. */
export function parseFile(
  frame: FileFrame,
  fileId: string,
  visitor: { id: string; lang?: string | undefined },
  now: number,
): Message {
  return {
    id: inboundId(visitor.id, frame.cid),
    chatId: visitor.id,
    from: visitor.id,
    type: 'media',
    body: '',
    media: {
      kind: kindOf(frame.type),
      mimeType: frame.type,
      fileName: safeFileName(frame.name),
      sizeBytes: frame.size,
      id: fileId,
    },
    isGroup: false,
    timestamp: now,
    ...(visitor.lang === undefined ? {} : { lang: visitor.lang }),
    raw: frame,
  }
}

export function inboundId(visitorId: string, cid: string): string {
  return `${visitorId}.${cid}`
}
