/**
 * Messages in the neutral form that every transport parses into and renders from (B4).
 * Everything except `raw` is plain JSON: a message can be journalled and travel to another replica.
 */

export interface Media {
  kind: 'image' | 'audio' | 'video' | 'document' | 'sticker'
  mimeType?: string
  fileName?: string
  caption?: string
  sizeBytes?: number
  /** The platform's handle of the file (media id, file id); downloading goes through the provider. */
  id?: string
  url?: string
}

export interface Button {
  id: string
  text: string
}

/**
 * - `text`: `body` is what was written.
 * - `media`: `media` is set, `body` its caption or empty.
 * - `button`: a button or a list row was chosen; `body` is its text, `buttonId` its id.
 * - `location`, `contact`, `reaction`, `command`, `other`: `body` is a readable form; the rest is in `raw`.
 */
export type MessageType =
  'text' | 'media' | 'button' | 'location' | 'contact' | 'reaction' | 'command' | 'other'

/** A message as the application sees it. */
export interface Message {
  /** The platform's id: what deduplication compares. */
  id: string
  chatId: string
  /** Who wrote it: the participant in a group, else usually the chat itself. */
  from: string
  fromName?: string
  type: MessageType
  body: string
  media?: Media
  buttonId?: string
  /** Buttons that the message itself carried. */
  buttons?: Button[]
  isGroup: boolean
  /** In groups: whose turn it is; part of the chat key. */
  participant?: string
  /** Id of the message that this one answers. */
  quotedId?: string
  /** Id of the message whose content this one replaces: its writer corrected it. */
  editOf?: string
  /** Milliseconds since the epoch, as the platform says. */
  timestamp: number
  /** Language tag the platform reports for the writer, such as `es` or `pt-BR`. */
  lang?: string
  /** The transport's own object; never journalled, absent after a hand-over. */
  raw?: unknown
}

/** What may be sent: a string is short for `{ text }`. Exactly one of text, media, buttons, list, template leads. */
export type Outgoing = string | OutgoingContent

export interface OutgoingContent {
  text?: string
  media?: {
    kind: Media['kind']
    url?: string
    id?: string
    data?: Uint8Array
    mimeType?: string
    fileName?: string
    caption?: string
  }
  /** Quick answers under `text`; a transport without buttons renders them as numbered lines. */
  buttons?: Button[]
  /** A menu under `text`. */
  list?: {
    button: string
    sections: { title?: string; rows: { id: string; title: string; description?: string }[] }[]
  }
  /**
   * A message whose wording the platform has approved beforehand (WhatsApp); it leads alone. `variables` fill the
   * body's placeholders in order; `components` is the platform's own form for all else, and wins over them.
   */
  template?: { name: string; language: string; variables?: string[]; components?: unknown[] }
  /** Id of the message to quote. */
  replyTo?: string
  /**
   * More of this message in the platform's own form, plain JSON. Each transport says what it takes (Discord: `embeds`,
   * `components`, …); the others ignore it.
   */
  platform?: Readonly<Record<string, unknown>>
}

/** The platform's receipt of a send. */
export interface Sent {
  id: string
}
